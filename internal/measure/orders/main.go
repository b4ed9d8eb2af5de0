// Orders measures the orders of answers (search --rerank) as a user gets them, on sets
// of files:
//
//	cd internal/measure
//	go run ./orders [-seeds 3] [-bits 64] SET...
//
// SET is a folder with train_NAME.npy for each modality and train_labels.npy, such as
// internal/synth/makeset writes and `fddhdb export` can; queries are query_NAME.npy and
// query_labels.npy, or, where there are none, a sixth of the items, drawn with each
// seed. Items are stored in an order drawn with the seed, so that what goes by age is
// random. Training has its defaults. There are three cases:
//
//   - labelled: all items have labels;
//   - unlabelled: training has seen one half of the items, with labels; the other half
//     came without, and only it is searched;
//   - mixed: the same database, all of which is searched.
//
// mAP is that of the whole answer, P@10 and P@50 that of its beginning, by all queries
// up to -queries, means over the seeds; +- is the standard deviation over the seeds of
// the difference of asymmetric and projection, in mAP. The time is the median of a
// search for 10 by one goroutine, in microseconds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// command runs a command line without the name of the program.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("orders", flag.ContinueOnError)
	f.SetOutput(stderr)
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
		s, err := readSet(dir)
		if err != nil {
			return err
		}
		for _, c := range cases {
			var runs [][]*pair
			for seed := range uint64(*seeds) {
				pairs, err := measure(ctx, s, c, seed, *bits, *queries)
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
