package source

import "hash/maphash"

// A keySet finds duplicate keys in a file of any number of items. It holds hashes of 128 bits, which do not
// collide by chance, in about 50 bytes a key.
type keySet struct {
	seeds [2]maphash.Seed
	rows  map[[2]uint64]int
}

// add adds the key of a row, "" if it has none. It returns the earlier row with the same key, or -1.
func (s *keySet) add(key string, row int) (first int) {
	if key == "" {
		return -1
	}
	if s.rows == nil {
		s.rows = map[[2]uint64]int{}
		s.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	hash := [2]uint64{maphash.String(s.seeds[0], key), maphash.String(s.seeds[1], key)}
	if first, twice := s.rows[hash]; twice {
		return first
	}
	s.rows[hash] = row
	return -1
}
