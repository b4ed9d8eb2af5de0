package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func updateCommand(e *env) *cobra.Command {
	var o cluster.UpdateOptions
	var space uint32
	cmd := &cobra.Command{
		Use:     "update COLLECTION",
		Short:   "Let the projections learn from the items that are there now",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Update makes a new revision of a space, on every shard: its projections learn from
			all items with labels that the model knows, as they are now. Codes that items have
			stay comparable and as they are; queries, and items that come from then on, are encoded by
			the new projections. It costs one pass over the items, where train costs several and
			new codes for all. Searches and writes go on.

			--grow-labels gives labels that the model does not know a direction of their own
			first, as long as there are any left, and the items that carry them other codes.

			Items stay where they are: shards send sums over them. One training or update of a
			collection runs at a time. If a node ends meanwhile it fails: call it again.`),
		Example: usage.Example(`
			fddhdb-cluster update wiki
			fddhdb-cluster update wiki --grow-labels`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Space = db.Space(space)
			bar := e.NewProgress()
			defer bar.End()
			o.Progress = bar.Report
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				if _, err := coll.Schema(ctx); err != nil {
					return e.noCollection(ctx, c, args[0], err)
				}
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				u, err := coll.Update(ctx, o)
				bar.End()
				switch {
				case errors.Is(err, db.ErrBusy):
					return exit.Failedf("%w: wait until the other one has ended", err)
				case errors.Is(err, db.ErrNoModel):
					return exit.Failedf("collection %s has no model: fddhdb-cluster train %s learns one", args[0], args[0])
				case errors.Is(err, db.ErrNotFound):
					return exit.Failedf("there is no space %d of collection %s: fddhdb-cluster spaces %s lists them", space, args[0], args[0])
				case errors.Is(err, db.ErrInvalid): // the command line is right
					return failed(err)
				case err != nil:
					return err
				}
				return e.printUpdate(u, args[0])
			})
		},
	}
	cmd.Flags().Uint32Var(&space, "space", 0, "the space to update; 0: the active one")
	cmd.Flags().BoolVar(&o.GrowLabels, "grow-labels", false, "give labels that the model does not know directions of their own")
	return cmd
}

func (e *env) printUpdate(u *cluster.Update, collection string) error {
	if len(u.NoDirection) > 0 {
		e.warnf("no direction is left for %s: fddhdb-cluster train %s --bits N, with more bits, learns them", strings.Join(u.NoDirection, ", "), collection)
	}
	if e.json {
		return e.PrintJSON(u)
	}
	if !u.Revised {
		e.Printf("nothing to learn from: space %d of collection %s stays at revision %d\n", u.Space, collection, u.Revision)
		return nil
	}
	most := 0
	for _, n := range u.Items {
		most = max(most, n)
	}
	e.Printf("revision %d of space %d of collection %s: learned from %s", u.Revision, u.Space, collection, term.Plural(most, "item", "items"))
	if len(u.Grown) > 0 {
		e.Printf("; new labels: %s", strings.Join(u.Grown, ", "))
	}
	e.Printf("\n")
	return nil
}
