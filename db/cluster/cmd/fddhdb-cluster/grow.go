package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func growCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "grow",
		Short:   "Double the number of shards",
		GroupID: groupCare,
		Long: usage.Prose(`
			Grow splits each shard in two, on the nodes that have it, while searches and writes
			go on. Move then gives some of the shards to other nodes. The nodes need a place
			for --backups, with which the halves begin, and twice the disk and the memory while
			it goes on; the servers need room for twice as many logs, and for those of before
			until it has ended.

			At the end writes wait for a moment. A training that goes on then fails, and a
			search cannot be continued (--after) that began before. The new shards have numbers
			that no shard has had; folders of the old ones stay on the nodes.

			If grow is interrupted, call it again: it goes on. Behind "closing" do so at once:
			writes wait until then. Make a backup afterwards: until there is one of each new
			shard, restore takes those of the old ones.`),
		Example: usage.Example(`
			fddhdb-cluster grow
			fddhdb-cluster backup --trim`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				before := c.Shards()
				bar := e.NewProgress()
				defer bar.End()
				err := c.Grow(ctx, cluster.GrowOptions{Progress: bar.Report})
				bar.End()
				if err != nil {
					return failed(err)
				}
				placed := c.Placement()
				if e.json {
					return e.PrintJSON(struct {
						Shards int `json:"shards"`
						First  int `json:"first"`
					}{len(placed), placed[0].Shard})
				}
				if c.Shards() == before { // an earlier growth was interrupted after the switch
					e.Printf("removed what an earlier growth has left: there are %s\n", term.Plural(before, "shard", "shards"))
					return nil
				}
				e.Printf("%s have become %d: %d to %d\n", term.Plural(before, "shard", "shards"), len(placed), placed[0].Shard, placed[0].Shard+len(placed)-1)
				return nil
			})
		},
	}
}
