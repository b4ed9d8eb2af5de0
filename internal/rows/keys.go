package rows

import "hash/maphash"

// Duplicates says what rows with the same key do.
type Duplicates byte

const (
	RefuseDuplicates Duplicates = iota // any but the first is an error of its row
	FirstDuplicate                     // the first is stored
	LastDuplicate                      // the last is stored
)

// A KeySet finds keys that come twice, in a file of any number of items. It holds hashes of 128 bits, which
// do not collide by chance, in about 50 bytes a key.
type KeySet struct {
	Policy Duplicates

	repeats bool // an earlier row has the key of the row in hand
	seeds   [2]maphash.Seed
	rows    map[[2]uint64]int
}

// Add adds the key of a row, "" if it has none. If duplicates are refused it returns the earlier row with the
// same key, else -1.
func (s *KeySet) Add(key string, row int) (first int, _ error) {
	if s.repeats = false; key == "" {
		return -1, nil
	}
	if s.rows == nil {
		s.rows = map[[2]uint64]int{}
		s.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	}
	hash := s.hash(key)
	first, s.repeats = s.rows[hash]
	switch {
	case !s.repeats:
		s.rows[hash] = row
	case s.Policy == RefuseDuplicates:
		return first, nil
	case s.Policy == FirstDuplicate:
		return -1, ErrDuplicate
	}
	return -1, nil
}

func (s *KeySet) hash(key string) [2]uint64 {
	return [2]uint64{maphash.String(s.seeds[0], key), maphash.String(s.seeds[1], key)}
}

// LeaveOut takes the key of a bad row, which is not added.
func (s *KeySet) LeaveOut(key string) {
	s.repeats = false
	if s.rows != nil {
		_, s.repeats = s.rows[s.hash(key)]
	}
}

// Repeats reports whether an earlier row has the key that Add or LeaveOut got last.
func (s *KeySet) Repeats() bool { return s.repeats }
