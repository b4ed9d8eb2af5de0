package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func moveCommand(e *env) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "move SHARD --from NODE --to NODE",
		Short:   "Move a shard from one node to another",
		GroupID: groupCare,
		Long: usage.Prose(`
			Move has a node take over a shard from another one. The new one begins with a
			backup or with the log, and when it has caught up the old one leaves: searches
			and writes go on all the time. The old one may be lost. Its folder of the shard
			stays. Status has the numbers of the shards.

			If move is interrupted, both have the shard: call it again.`),
		Example: usage.Example(`fddhdb-cluster move 3 --from a --to d`),
		Args:    arguments(1, 1, "the number of a shard"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := strconv.Atoi(args[0])
			switch {
			case err != nil || shard < 0:
				return exit.Usagef("%q is no number of a shard: fddhdb-cluster status has them", args[0])
			case from == "" || to == "":
				return exit.Usagef("--from NODE and --to NODE say where the shard is and where it goes: one is missing")
			case from == to:
				return exit.Usagef("--from %s --to %s: these are one node", from, to)
			}
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				placed := c.Placement()
				first, nodes := placed[0].Shard, nodesOf(c, shard)
				switch {
				case nodes == nil:
					return exit.Usagef("there is no shard %d: cluster %s has %d to %d", shard, e.link.cluster, first, first+len(placed)-1)
				case !slices.Contains(nodes, from):
					return exit.Failedf("node %s does not have shard %d: fddhdb-cluster status says which do", from, shard)
				}
				if err := answering(ctx, c, "--to", to); err != nil {
					return err
				}
				bar := e.NewProgress()
				defer bar.End()
				bar.Report("catching up", 0, 0)
				err := c.Move(ctx, shard, from, to)
				bar.End()
				if err != nil {
					return failed(err)
				}
				if e.json {
					return e.PrintJSON(struct {
						Shard int      `json:"shard"`
						Nodes []string `json:"nodes"`
					}{shard, nodesOf(c, shard)})
				}
				e.Printf("moved shard %d from %s to %s\n", shard, from, to)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the `NODE` that has it")
	cmd.Flags().StringVar(&to, "to", "", "the `NODE` that takes it over")
	return cmd
}

// nodesOf returns the nodes that have a shard; nil: there is no such shard.
func nodesOf(c *cluster.Client, shard int) []string {
	for _, p := range c.Placement() {
		if p.Shard == shard {
			return append([]string{}, p.Nodes...)
		}
	}
	return nil
}

// answering refuses a silent node: work for it would wait without end.
func answering(ctx context.Context, c *cluster.Client, flag, node string) error {
	all, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Node)
	}
	if slices.Contains(names, node) {
		return nil
	}
	if near := term.Nearest(node, names); near != "" {
		return exit.Failedf("%s %s: no such node answers: did you mean %s?", flag, node, near)
	}
	return exit.Failedf("%s %s: no such node answers: fddhdb-cluster status names those that do", flag, node)
}
