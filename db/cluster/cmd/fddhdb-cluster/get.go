package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func getCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get COLLECTION KEY...",
		Short:   "Print items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Get prints the items with these keys, with --json one a line and with all their
			vectors. If a key has no item, the others are printed, and the exit code is 1. A
			key that begins with - stands behind --.`),
		Example: usage.Example(`
			fddhdb-cluster get hashes cat.jpg
			fddhdb-cluster get hashes --json -- -k`),
		Args: arguments(2, -1, "the name of a collection and the key of an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				var missing []string
				var why error
				for _, key := range args[1:] {
					it, err := coll.Get(ctx, key)
					if errors.Is(err, db.ErrNotFound) {
						missing, why = append(missing, key), err
						continue
					}
					if err == nil {
						err = e.printItem(it)
					}
					if err != nil {
						return err
					}
				}
				if len(missing) == 0 {
					return nil
				}
				if err := e.noCollection(ctx, c, args[0], why); err != why {
					return err
				}
				return exit.Failedf("not found in collection %q: %s", args[0], term.Plain(strings.Join(missing, ", ")))
			})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}

// printItem prints an item, as fddhdb get does.
func (e *env) printItem(it *db.Item) error {
	if e.json {
		return e.PrintJSON(it)
	}
	textform.PrintItem(e.Printer, it)
	return nil
}
