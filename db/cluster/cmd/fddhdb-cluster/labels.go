package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func labelsCommand(e *env) *cobra.Command {
	var where whereFlag
	var limit int
	cmd := &cobra.Command{
		Use:     "labels COLLECTION",
		Short:   "List labels",
		GroupID: groupFind,
		Long: usage.Prose(`
			Labels lists the labels that items have, with the number of items of each, the most
			frequent first; with --where of the items that match.`),
		Example: usage.Example(`fddhdb-cluster labels wiki --where "has(image)" --limit 5`),
		Args:    arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && limit < 1 {
				return exit.Usagef("--limit %d: 1 or more labels are possible", limit)
			}
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				facets, err := coll.Facets(ctx, db.FacetQuery{By: "label", Where: where.Expr, Limit: limit})
				if err != nil {
					return where.wrap(e.noCollection(ctx, c, args[0], err))
				}
				if !e.json {
					textform.PrintLabels(e.Printer, facets)
					return nil
				}
				for _, n := range facets.Counts {
					label, _ := n.Value.(string)
					err := e.PrintJSON(struct {
						Label string `json:"label"`
						Items int    `json:"items"`
					}{label, n.Items})
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	where.register(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "list the `N` most frequent labels (default: all)")
	return cmd
}
