// Stream shows what it is worth to go on learning while items keep coming: a database is
// trained on the first tenth of a generated set, the rest arrives in chunks, and after
// each the projections are updated, or not. mAP of held-out queries, over all items that
// have been seen, is printed and drawn against their number.
//
//	go run ./examples/stream [-set NAME] [-noise X] [-items N] [-seeds N] [-out FILE.svg]
//
// Where items come with their labels, their codes are those of the labels, and
//
//   - updated: each chunk teaches, by its labels;
//   - never updated: the model stays the one of the first tenth;
//   - trained on all: a new training at the end, in a new code space, which takes over.
//
// Where they come without, the projections of the moment make their codes, which stay as
// they are, and
//
//   - stronger modality, guarded: the code that the better modality gives an item teaches
//     all modalities, if labelled items that are held back are found better for it;
//   - stronger modality: the same, unguarded;
//   - self: each modality learns from its own codes, as in the paper (Liu, Wang, Cheung:
//     FDDH, IEEE TNNLS 2021, eqs. 22-24);
//   - never updated.
//
// The sets are of pictures and texts that share nothing but their labels: nuswide, of the
// shape of the set of that name (synth.NUSWide), where an item has several labels of ten,
// and pairs, Gaussian clusters of 24 labels, one an item (synth.Pairs). On nuswide
// codes that modalities make themselves teach their mistakes, which is what the guard is
// for; on pairs they teach well. -noise makes a set easier or harder.
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

// settings are the flags.
type settings struct {
	kind                         kind
	noise                        float64
	items, queries, chunk, seeds int
	dir, out                     string
}

// command runs a command line without the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	f := flag.NewFlagSet("stream", flag.ContinueOnError)
	f.SetOutput(stderr)
	name := f.String("set", kinds[0].name, "nuswide or pairs")
	f.Float64Var(&s.noise, "noise", 0, "of nuswide, the share that is not of the labels, 0.8; of pairs, its standard deviation, where that of the classes is 1, 1")
	f.IntVar(&s.items, "items", 2000, "items, of which a tenth trains and the rest streams")
	f.IntVar(&s.queries, "queries", 300, "held-out items to query with")
	f.IntVar(&s.chunk, "chunk", 100, "items between two updates")
	f.IntVar(&s.seeds, "seeds", 2, "sets and trainings that figures are the mean of")
	f.StringVar(&s.dir, "dir", "", "new folder for the database; without it, one that is removed at the end")
	f.StringVar(&s.out, "out", "stream.svg", "figure to draw, .svg or .png")
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
	_, err = fmt.Fprintf(stdout, "\n%s has the curves.\n", s.out)
	return err
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
	case ext != ".svg" && ext != ".png":
		return fmt.Errorf("-out %s: a .svg or .png file is drawn", s.out)
	}
	return nil
}

// leastItems leaves a tenth that has every label.
const leastItems = 300

// first is how many items train.
func (s settings) first() int { return s.items / 10 }
