package orders

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
	seeds, bits, queries := 3, 64, 500
	cmd := common.New("orders SET...", "Compare the orders of answers (search --rerank)",
		"A SET is a folder of files as makeset writes it. Codes have at least as many bits as there are labels.",
		cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
			return measure(cmd.Context(), args, seeds, bits, queries, cmd.OutOrStdout())
		})
	f := common.FlagsOf(cmd)
	f.Seeds(&seeds)
	f.Bits(&bits)
	f.Queries(&queries)
	return cmd
}

// measure prints a table of all sets.
func measure(ctx context.Context, folders []string, seeds, bits, queries int, stdout io.Writer) error {
	header(stdout)
	for _, dir := range folders {
		s, err := sets.Read(dir)
		if err != nil {
			return err
		}
		for _, c := range cases {
			var runs [][]*pair
			for seed := range uint64(seeds) {
				pairs, err := evaluate(ctx, s, c, seed, bits, queries)
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
