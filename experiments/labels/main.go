package labels

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
)

// Command returns the experiment.
func Command() *cobra.Command {
	seeds, bits, shares := 3, 64, common.Ints{1, 5, 10, 25, 100}
	cmd := common.New("labels SET...", "Compare codes without labels with FDDH of few labels",
		"A SET is a folder of files as makeset writes it, or a published .mat file. Codes learned from labels have at least as many bits as there are labels.",
		cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
			return measure(cmd.Context(), args, seeds, bits, shares, cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Seeds(&seeds)
	f.Bits(&bits)
	f.Var(&shares, "shares", "percentages of the items that have labels")
	return cmd
}

// measure prints a table of each set.
func measure(ctx context.Context, folders []string, seeds, bits int, shares []int, stdout io.Writer) error {
	for _, dir := range folders {
		s, err := sets.Read(dir)
		if err != nil {
			return err
		}
		var runs [][]*row
		for seed := range uint64(seeds) {
			rows, err := evaluate(ctx, s, seed, bits, shares)
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
			var values []float64
			for _, r := range runs {
				values = append(values, r[i].figures[j].value)
			}
			mean, std := common.MeanStd(values)
			cells, widest = append(cells, common.Share(mean)), max(widest, std)
		}
		common.Row(w, append(cells, common.Share(widest))...)
	}
	fmt.Fprintln(w)
}
