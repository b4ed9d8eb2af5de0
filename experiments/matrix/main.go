package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func main() { common.Main("matrix", command) }

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"codes": codesCommand, "run": runCommand, "tables": tablesCommand, "plots": plotsCommand,
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New("one of codes, run, tables and plots is expected; each explains itself with -h")
	}
	return verbs[args[0]](ctx, args[1:], stdout, stderr)
}

// parse reads the flags of a verb. The verb takes no other arguments.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s: what is %q?", f.Name(), f.Arg(0))
	}
	return nil
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

func (l *setList) Set(s string) error {
	*l = nil
	for _, letter := range strings.Split(s, ",") {
		set, err := synth.ParseCodeSet(letter)
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
