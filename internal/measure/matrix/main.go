// Matrix measures searches over the codes of package synth and makes tables and
// figures of the results, by way of the command line that everybody has:
//
//	go build -o /tmp/fddhdb ./cmd/fddhdb
//	cd internal/measure
//	go run ./matrix run -fddhdb /tmp/fddhdb -out results.jsonl
//	go run ./matrix tables -in results.jsonl
//	go run ./matrix plots -in results.jsonl -dir ../../docs/bench
//	go run ./matrix codes -set S -bits 128 -n 1000000 -dir /tmp
//
// Run makes each set, imports it into a database of its own, which is deleted
// afterwards, and calls fddhdb bench with three kinds of queries: perturbed members of
// the set, fresh codes of its distribution, and both in turn. What is in the file of
// results already is not measured again, so that an interrupted run goes on where it
// was.
//
// The file of results has a JSON object a line: set, bits, n and kind, and the fields of
// fddhdb bench --json; or, where op is "store", what importing and storing the set took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/internal/synth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// command runs a command line without the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verbs := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"codes": codesCommand, "run": runCommand, "tables": tablesCommand, "plots": plotsCommand,
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New("one of codes, run, tables and plots is expected; each explains itself with -h")
	}
	return verbs[args[0]](ctx, args[1:], stdout, stderr)
}

// newFlags returns the flags of a verb, which takes no other arguments.
func newFlags(verb string, stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(verb, flag.ContinueOnError)
	f.SetOutput(stderr)
	return f
}

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

// intList is the value of a flag that takes whole numbers; there may be none.
type intList []int

func (l *intList) String() string {
	var words []string
	for _, n := range *l {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

func (l *intList) Set(s string) error {
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

// The kinds of queries.
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
