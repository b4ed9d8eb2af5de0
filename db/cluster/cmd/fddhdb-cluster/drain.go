package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func drainCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drain NODE",
		Short:   "Move all shards of a node to others",
		GroupID: groupCare,
		Long: usage.Prose(`
			Drain moves all shards of a node to others, those with the fewest shards first, so
			that it can be shut down, or replaced where it is lost. Searches and writes go on.
			If it is interrupted, call it again.`),
		Example: usage.Example(`fddhdb-cluster drain b`),
		Args:    arguments(1, 1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				has := func() (shards []int) {
					for _, p := range c.Placement() {
						if slices.Contains(p.Nodes, args[0]) {
							shards = append(shards, p.Shard)
						}
					}
					return shards
				}
				before := has()
				if len(before) == 0 {
					if err := answering(ctx, c, "node", args[0]); err != nil {
						return err
					}
				}
				bar := e.NewProgress()
				defer bar.End()
				bar.Report("moving shards", 0, 0)
				err := c.Drain(ctx, args[0])
				bar.End()
				if err != nil {
					if left := has(); len(left) < len(before) {
						err = exit.Wrap(err, "%s moved, of %d", term.Plural(len(before)-len(left), "shard is", "shards are"), len(before))
					}
					return failed(err)
				}
				if e.json {
					return e.PrintJSON(struct {
						Node  string `json:"node"`
						Moved int    `json:"moved"`
					}{args[0], len(before)})
				}
				e.Printf("moved %s from %s\n", term.Plural(len(before), "shard", "shards"), args[0])
				return nil
			})
		},
	}
}
