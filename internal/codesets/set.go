package codesets

import "fmt"

// A Set is a distribution of codes; its value is the letter that reports use.
type Set byte

// The sets; the package comment says what they are.
const (
	Uniform   Set = 'U'
	Clustered Set = 'C'
	Learned   Set = 'L'
	Projected Set = 'S'
)

// Sets returns all sets, in the order of reports.
func Sets() []Set { return []Set{Uniform, Clustered, Learned, Projected} }

// ParseSet returns the set with this letter: U, C, L or S.
func ParseSet(letter string) (Set, error) {
	for _, s := range Sets() {
		if letter == s.String() {
			return s, nil
		}
	}
	return 0, unknown(letter)
}

func unknown(letter string) error {
	return fmt.Errorf("unknown set %q: there are U, C, L and S", letter)
}

// String returns the letter.
func (s Set) String() string { return string(rune(s)) }

// Name returns the name in words.
func (s Set) Name() string {
	switch s {
	case Uniform:
		return "uniform"
	case Clustered:
		return "clustered"
	case Learned:
		return "learned"
	case Projected:
		return "projected"
	}
	return fmt.Sprintf("Set(%d)", byte(s))
}
