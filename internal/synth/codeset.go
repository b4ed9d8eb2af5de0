package synth

import "fmt"

// A CodeSet is a distribution of codes. Its value is the letter in reports.
type CodeSet byte

// These are the sets. The package comment describes them.
const (
	Uniform   CodeSet = 'U'
	Clustered CodeSet = 'C'
	Learned   CodeSet = 'L'
	Projected CodeSet = 'S'
)

// CodeSets returns all sets, in the order of reports.
func CodeSets() []CodeSet { return []CodeSet{Uniform, Clustered, Learned, Projected} }

func unknown(letter string) error {
	return fmt.Errorf("unknown set %q: there are U, C, L and S", letter)
}

// String returns the letter of the set.
func (s CodeSet) String() string { return string(rune(s)) }

// Name returns the name of the set in words.
func (s CodeSet) Name() string {
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
	return fmt.Sprintf("CodeSet(%d)", byte(s))
}
