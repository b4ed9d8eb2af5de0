package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
)

func main() { common.Main("labels", command) }

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := common.NewFlags("labels", stderr)
	seeds := f.Int("seeds", 3, "databases of each set")
	bits := f.Int("bits", 64, "length of the codes learned from labels; at least as many as there are labels")
	shares := common.Ints{1, 5, 10, 25, 100}
	f.Var(&shares, "shares", "percentages of the items that have labels")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("name a set: labels [flags] DIR")
	}
	if *seeds < 1 {
		return fmt.Errorf("%d seeds: 1 or more are possible", *seeds)
	}
	for _, dir := range f.Args() {
		s, err := sets.Read(dir)
		if err != nil {
			return err
		}
		var runs [][]*row
		for seed := range uint64(*seeds) {
			rows, err := evaluate(ctx, s, seed, *bits, shares)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", dir, seed, err)
			}
			runs = append(runs, rows)
		}
		printRuns(stdout, filepath.Base(filepath.Clean(dir)), runs)
	}
	return nil
}

// printRuns writes a table of means over the runs, each of which has the same rows.
func printRuns(w io.Writer, set string, runs [][]*row) {
	head := []string{set, "labelled", "codes"}
	for _, f := range runs[0][0].figures {
		head = append(head, f.name)
	}
	common.Head(w, 3, append(head, "+-")...)
	for i, first := range runs[0] {
		cells := []string{first.share, fmt.Sprint(first.labelled), first.codes}
		widest := 0.
		for j := range first.figures {
			mean, variance := 0., 0.
			for _, r := range runs {
				mean += r[i].figures[j].value / float64(len(runs))
			}
			for _, r := range runs {
				d := r[i].figures[j].value - mean
				variance += d * d / float64(max(len(runs)-1, 1))
			}
			cells, widest = append(cells, common.Share(mean)), max(widest, math.Sqrt(variance))
		}
		common.Row(w, append(cells, common.Share(widest))...)
	}
	fmt.Fprintln(w)
}
