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

func facetsCommand(e *env) *cobra.Command {
	var where whereFlag
	var by string
	var limit int
	cmd := &cobra.Command{
		Use:     "facets COLLECTION --by FIELD",
		Short:   "Count the items by label, or by the values of a field",
		GroupID: groupFind,
		Long: usage.Prose(`
			Facets counts the items of each label, or of each value of a field, the most
			first; with --where of the items that match. An item counts for each of its
			labels. Items without a label, or without a value of the field, are counted last,
			as null. All counts are exact.`),
		Example: usage.Example(`
			fddhdb-cluster facets wiki --by label
			fddhdb-cluster facets wiki --by year --where "label = 'art'" --limit 10`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case by == "":
				return exit.Usagef("--by is missing: label, or the name of a field")
			case cmd.Flags().Changed("limit") && limit < 1:
				return exit.Usagef("--limit %d: 1 or more values are possible", limit)
			}
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				facets, err := coll.Facets(ctx, db.FacetQuery{By: by, Where: where.Expr, Limit: limit})
				if err != nil {
					return where.wrap(e.noCollection(ctx, c, args[0], err))
				}
				if !e.json {
					textform.PrintValues(e.Printer, by, facets)
					return nil
				}
				for _, n := range textform.Counts(facets) {
					if err := e.PrintJSON(n); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	where.register(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().StringVar(&by, "by", "", "what to count by: label, or a `FIELD`")
	cmd.Flags().IntVar(&limit, "limit", 0, "print the `N` values of the most items (default: all)")
	return cmd
}
