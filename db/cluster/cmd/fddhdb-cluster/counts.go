package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// A whereFlag is --where.
type whereFlag struct{ flags.Where }

func (w *whereFlag) register(cmd *cobra.Command) {
	cmd.Flags().Var(&w.Where, "where", "only items that match, such as \"label = 'cat' AND year >= 2020\": fddhdb help scan")
}

// wrap turns an error about the expression into one about the flag.
func (w *whereFlag) wrap(err error) error {
	var bad *db.WhereError
	if !w.Given() || !errors.As(err, &bad) {
		return err
	}
	return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
}

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
				var rows [][]any
				for _, n := range textform.Counts(facets) {
					if e.json {
						if err := e.PrintJSON(n); err != nil {
							return err
						}
					}
					rows = append(rows, []any{textform.ValueCell(n.Value), term.CountCell(n.Items)})
				}
				if !e.json {
					e.PrintTable([]term.Column{term.Left(by), term.Right("items")}, rows)
					textform.PrintMore(e.Printer, facets)
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
				var rows [][]any
				for _, n := range facets.Counts {
					label, _ := n.Value.(string)
					if e.json {
						err := e.PrintJSON(struct {
							Label string `json:"label"`
							Items int    `json:"items"`
						}{label, n.Items})
						if err != nil {
							return err
						}
					}
					rows = append(rows, []any{term.TextCell(label), term.CountCell(n.Items)})
				}
				if !e.json {
					e.PrintTable([]term.Column{term.Left("label"), term.Right("items")}, rows)
					textform.PrintMore(e.Printer, facets)
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
