package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
)

func main() { common.Main("orders", command) }

// command runs a command line. args does not have the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := common.NewFlags("orders", stderr)
	seeds := f.Int("seeds", 3, "databases of each set and case")
	bits := f.Int("bits", 64, "length of the codes; at least as many as there are labels")
	queries := f.Int("queries", 500, "at most")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("name a set: orders [flags] DIR")
	}
	if *seeds < 1 || *queries < 1 {
		return fmt.Errorf("%d seeds and %d queries: 1 or more are possible", *seeds, *queries)
	}
	header(stdout)
	for _, dir := range f.Args() {
		s, err := sets.Read(dir)
		if err != nil {
			return err
		}
		for _, c := range cases {
			var runs [][]*pair
			for seed := range uint64(*seeds) {
				pairs, err := evaluate(ctx, s, c, seed, *bits, *queries)
				if err != nil {
					return fmt.Errorf("%s, %s, seed %d: %w", dir, c, seed, err)
				}
				runs = append(runs, pairs)
			}
			print(stdout, filepath.Base(filepath.Clean(dir)), c, runs)
		}
	}
	return nil
}
