package common

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags are the flags of an experiment. The methods add those that several experiments have, by the same name
// in each.
type Flags struct{ *pflag.FlagSet }

// FlagsOf returns the flags of a command.
func FlagsOf(cmd *cobra.Command) Flags {
	f := Flags{cmd.Flags()}
	f.SortFlags = false
	return f
}

// Items adds the numbers of items that are measured one after the other.
func (f Flags) Items(l *Ints) { f.Var(counts{l}, "items", "numbers of items") }

// Bits adds the length of codes.
func (f Flags) Bits(n *int) { f.Count(n, "bits", "length of the codes") }

// Queries adds the number of queries.
func (f Flags) Queries(n *int) { f.Count(n, "queries", "number of queries, at most") }

// Seed adds the seed of all that is random.
func (f Flags) Seed(n *uint64) { f.Uint64Var(n, "seed", *n, "seed of all that is random") }

// Seeds adds the number of runs that a figure is the mean of.
func (f Flags) Seeds(n *int) { f.Count(n, "seeds", "runs of each row, each with its own seed") }

// Rounds adds the number of runs in turns.
func (f Flags) Rounds(n *int) { f.Count(n, "rounds", "runs of each side, in turns") }

// Dir adds the folder of what is measured.
func (f Flags) Dir(dir *string) {
	f.StringVar(dir, "dir", *dir, "folder for databases; a temporary one if empty")
}

// Count adds a flag of a whole number from 1.
func (f Flags) Count(n *int, name, usage string) { f.Var(count{n}, name, usage) }

// K adds the number of nearest items of an answer.
func (f Flags) K(n *int) { f.VarP(count{n}, "k", "k", "nearest items") }

// A count is the value of a flag that takes a whole number from 1.
type count struct{ n *int }

func (c count) String() string {
	if c.n == nil {
		return ""
	}
	return strconv.Itoa(*c.n)
}

func (c count) Type() string { return "N" }

func (c count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no number from 1", s)
	}
	*c.n = n
	return nil
}

// Ints is the value of a flag that takes whole numbers from 0 with commas between them;
// there may be none.
type Ints []int

// String returns the numbers as Set takes them.
func (l *Ints) String() string {
	var words []string
	for _, n := range *l {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// Type implements pflag.Value.
func (l *Ints) Type() string { return "N,..." }

// Set replaces the numbers.
func (l *Ints) Set(s string) error {
	*l = nil
	if s == "" {
		return nil
	}
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number", word)
		}
		*l = append(*l, n)
	}
	return nil
}

// Counts adds a flag of whole numbers from 1, of which there is at least one.
func (f Flags) Counts(l *Ints, name, usage string) { f.Var(counts{l}, name, usage) }

// counts are numbers from 1, of which there is at least one.
type counts struct{ *Ints }

func (c counts) Set(s string) error {
	if s == "" {
		return fmt.Errorf("a number is missing")
	}
	for _, word := range strings.Split(s, ",") {
		if word == "0" {
			return fmt.Errorf("%q is no number from 1", word)
		}
	}
	return c.Ints.Set(s)
}
