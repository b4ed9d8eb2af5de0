package common

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// NewFlags returns the flags of a program or verb. Help and errors go to stderr.
func NewFlags(name string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(stderr)
	return f
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
