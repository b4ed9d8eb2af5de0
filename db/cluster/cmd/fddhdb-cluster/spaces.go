package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func spacesCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "spaces COLLECTION",
		Short:   "List the spaces of codes",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Spaces lists the spaces of codes of a collection. One is active: searches use it.
			Others stand by, or are being built, until every shard has all codes.`),
		Example: usage.Example(`fddhdb-cluster spaces wiki`),
		Args:    arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				spaces, err := coll.Spaces(ctx)
				if err != nil {
					return e.noCollection(ctx, c, args[0], err)
				}
				var rows [][]any
				for _, s := range spaces {
					if e.json {
						if err := e.PrintJSON(s); err != nil {
							return err
						}
						continue
					}
					state := string(s.State)
					if s.Shards < c.Shards() {
						state += ", on " + term.Plural(s.Shards, "shard", "shards") + " so far"
					}
					rows = append(rows, []any{s.Space, state, s.Bits, s.Revision, term.CountCell(s.Items)})
				}
				switch {
				case e.json:
				case len(rows) == 0:
					e.Printf("collection %s has no codes yet: fddhdb-cluster train %s learns a model, and import %s --model FILE brings one in\n", args[0], args[0], args[0])
				default:
					e.PrintTable([]term.Column{term.Right("space"), term.Left("state"), term.Right("bits"), term.Right("revision"), term.Right("items")}, rows)
				}
				return nil
			})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}

func activateCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "activate COLLECTION SPACE",
		Short:   "Make another space of codes the active one",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Activate makes a space, by its number, the one that searches use, shard after shard.
			No search fails meanwhile. The one before stands by.`),
		Example: usage.Example(`fddhdb-cluster activate wiki 2`),
		Args:    arguments(2, 2, "the name of a collection and the number of a space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.changeSpace(cmd.Context(), args, (*cluster.Collection).Activate, "space %d of collection %s is the active one now\n")
		},
	}
}

func dropSpaceCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drop-space COLLECTION SPACE",
		Short:   "Delete a space of codes",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Drop-space deletes a space, by its number: its codes and its model, and not the
			items. It cannot be the active one.`),
		Example: usage.Example(`fddhdb-cluster drop-space wiki 1`),
		Args:    arguments(2, 2, "the name of a collection and the number of a space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.changeSpace(cmd.Context(), args, (*cluster.Collection).DropSpace, "dropped space %d of collection %s\n")
		},
	}
}

// changeSpace applies change to a space given by its number.
func (e *env) changeSpace(ctx context.Context, args []string, change func(*cluster.Collection, context.Context, db.Space) error, done string) error {
	n, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil || n == 0 {
		return exit.Usagef("%q is no number of a space: they count from 1, and fddhdb-cluster spaces %s lists them", args[1], args[0])
	}
	return e.withCollection(ctx, args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
		switch err := change(coll, ctx, db.Space(n)); {
		case errors.Is(err, db.ErrNotFound):
			if err := e.noCollection(ctx, c, args[0], err); !errors.Is(err, db.ErrNotFound) {
				return err
			}
			return exit.Failedf("there is no space %d of collection %s: fddhdb-cluster spaces %s lists them", n, args[0], args[0])
		case errors.Is(err, db.ErrInvalid): // the command line is right; the space is the active one
			return exit.Failedf("%w", err)
		case err != nil:
			return err
		}
		if e.json {
			return e.PrintJSON(struct {
				Collection string `json:"collection"`
				Space      uint64 `json:"space"`
			}{args[0], n})
		}
		e.Printf(done, n, args[0])
		return nil
	})
}
