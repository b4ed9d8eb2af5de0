package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	err := command(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "stream:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	kind                         kind
	noise                        float64
	items, queries, chunk, seeds int
	dir, out                     string
}

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	f := flag.NewFlagSet("stream", flag.ContinueOnError)
	f.SetOutput(stderr)
	name := f.String("set", kinds[0].name, "nuswide or pairs")
	f.Float64Var(&s.noise, "noise", 0,
		"of nuswide, the share that is not of the labels, 0.8; of pairs, its standard deviation, where that of the classes is 1, 1")
	f.IntVar(&s.items, "items", 2000, "items, of which a tenth trains and the rest streams")
	f.IntVar(&s.queries, "queries", 300, "held-out items to query with")
	f.IntVar(&s.chunk, "chunk", 100, "items between two updates")
	f.IntVar(&s.seeds, "seeds", 2, "sets and trainings that figures are the mean of")
	f.StringVar(&s.dir, "dir", "", "new folder for the database; without it, one that is removed at the end")
	f.StringVar(&s.out, "out", "stream.svg", "figure to draw, a .svg file")
	if err := f.Parse(args); err != nil {
		return err
	}
	var ok bool
	if s.kind, ok = kindOf(*name); !ok {
		return fmt.Errorf("-set %s: nuswide and pairs are possible", *name)
	}
	if s.noise == 0 {
		s.noise = s.kind.noise
	}
	if err := s.check(f.Args()); err != nil {
		return err
	}
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "stream-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		s.dir = dir
	}
	fmt.Fprintf(stdout, "%s, noise %g: %d items train, %d come in chunks of %d, %d query.\n",
		s.kind.name, s.noise, s.first(), s.items-s.first(), s.chunk, s.queries)
	curves, err := measure(ctx, s)
	if err != nil {
		return err
	}
	if err := printTables(stdout, curves, s.seeds); err != nil {
		return err
	}
	if err := drawFigure(s.out, curves); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "\n%s has the curves.\n", s.out); err != nil {
		return err
	}
	return printConclusion(stdout, curves, s)
}

func (s settings) check(rest []string) error {
	ext := strings.ToLower(filepath.Ext(s.out))
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%s: there are flags only, see -help", rest[0])
	case s.items < leastItems:
		return fmt.Errorf("-items %d: it takes %d, of which a tenth trains", s.items, leastItems)
	case s.queries < 1 || s.chunk < 1 || s.seeds < 1:
		return errors.New("-queries, -chunk and -seeds: 1 or more are possible")
	case ext != ".svg":
		return fmt.Errorf("-out %s: a .svg file is drawn", s.out)
	}
	return nil
}

// leastItems is the least number of items: a tenth of it still has every label.
const leastItems = 300

// first returns the number of items in the first training.
func (s settings) first() int { return s.items / 10 }
