package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func deleteCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "delete COLLECTION KEY...",
		Short:   "Delete items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Delete deletes the items with these keys. A key without an item is no error, and
			counts as the others do: whether there was one is not told.`),
		Example: usage.Example(`fddhdb-cluster delete hashes cat.jpg dog.jpg`),
		Args:    arguments(2, -1, "the name of a collection and the key of an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			keys := args[1:]
			for _, key := range keys {
				if key == "" || len(key) > db.MaxKeyBytes {
					return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
				}
			}
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				errs := make([]error, len(keys))
				var all sync.WaitGroup
				for i, key := range keys {
					all.Go(func() { errs[i] = coll.Delete(ctx, key) }) // the client bounds the deletions in flight
				}
				all.Wait()
				if err := errors.Join(errs...); err != nil {
					return e.noCollection(ctx, c, args[0], err)
				}
				if e.json {
					return e.PrintJSON(map[string]int{"keys": len(keys)})
				}
				if len(keys) == 1 {
					e.Printf("1 key has no item now\n")
				} else {
					e.Printf("%s keys have no item now\n", term.Thousands(len(keys)))
				}
				return nil
			})
		},
	}
}
