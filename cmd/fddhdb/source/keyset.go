package source

import "hash/maphash"

// A keySet finds keys that come twice in a file of any number of items. It keeps hashes of
// 128 bits, of which no two are the same by chance, some 50 bytes a key.
type keySet struct {
	seeds [2]maphash.Seed
	rows  map[[2]uint64]int
}

// add adds the key of a row, "" where it has none. It returns the row that has the key
// already, -1 where there is none.
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
