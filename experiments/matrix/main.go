package matrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Command returns the experiment.
func Command() *cobra.Command {
	cmd := common.New("matrix", "Measure searches over generated codes, by every plan", "", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(codesCommand(), runCommand(), tablesCommand(), plotsCommand())
	return cmd
}

// parseCodeSet returns the set with the letter U, C, L or S.
func parseCodeSet(letter string) (synth.CodeSet, error) {
	for _, s := range synth.CodeSets() {
		if letter == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown set %q: there are U, C, L and S", letter)
}

// setList is the value of a flag that takes letters of sets.
type setList []synth.CodeSet

func (l *setList) String() string {
	var letters []string
	for _, s := range *l {
		letters = append(letters, s.String())
	}
	return strings.Join(letters, ",")
}

func (l *setList) Type() string { return "LETTER,..." }

func (l *setList) Set(s string) error {
	*l = nil
	for _, letter := range strings.Split(s, ",") {
		set, err := parseCodeSet(letter)
		if err != nil {
			return err
		}
		*l = append(*l, set)
	}
	return nil
}

// These are the kinds of queries.
const (
	members = "members" // perturbed items
	fresh   = "fresh"
	both    = "both" // half of each, in turn
)

// kindList is the value of a flag that takes kinds of queries.
type kindList []string

func (l *kindList) String() string { return strings.Join(*l, ",") }

func (l *kindList) Type() string { return "KIND,..." }

func (l *kindList) Set(s string) error {
	*l = nil
	for _, kind := range strings.Split(s, ",") {
		if !slices.Contains([]string{members, fresh, both}, kind) {
			return fmt.Errorf("there is no kind %q: there are members, fresh and both", kind)
		}
		*l = append(*l, kind)
	}
	return nil
}
