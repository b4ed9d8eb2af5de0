package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func countCommand(e *env) *cobra.Command {
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count COLLECTION",
		Short:   "Count the items",
		GroupID: groupFind,
		Long:    usage.Prose(`Count prints how many items a collection has, or how many match --where.`),
		Example: usage.Example(`
			fddhdb-cluster count wiki
			fddhdb-cluster count wiki --where "label = 'art' AND has(image)"`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				n, err := coll.Count(ctx, where.Expr)
				if err != nil {
					return where.wrap(e.noCollection(ctx, c, args[0], err))
				}
				if e.json {
					return e.PrintJSON(map[string]int{"count": n})
				}
				e.Printf("%d\n", n)
				return nil
			})
		},
	}
	where.register(cmd)
	return cmd
}
