package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func trainCommand(e *env) *cobra.Command {
	var o flags.Settings
	cmd := &cobra.Command{
		Use:     "train COLLECTION",
		Short:   "Learn a model from the items of all shards",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Train learns a model from the labelled items, or where none has labels from all,
			and gives it to every shard, whose items get their codes in a new space. The
			first space is active at once; --activate makes a later one so. Searches and writes
			go on. The flags are those of fddhdb train, and fddhdb help train explains them;
			the methods joint and paper are for one database.

			Items stay where they are: shards send sums over them. One training of a collection
			runs at a time. If a node ends meanwhile the training fails: call it again.`),
		Example: usage.Example(`
			fddhdb-cluster train wiki
			fddhdb-cluster train wiki --bits 128 --anchors 800 --activate`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd.Flags()); err != nil {
				return err
			}
			if err := o.LeaveOpen(cmd.Flags()); err != nil {
				return err
			}
			bar := e.NewProgress()
			defer bar.End()
			o.Progress = bar.Report
			return e.withCollection(cmd.Context(), args[0], func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
				if _, err := coll.Schema(ctx); err != nil {
					return e.noCollection(ctx, c, args[0], err)
				}
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				t, err := coll.Train(ctx, o.TrainOptions)
				bar.End()
				switch {
				case errors.Is(err, db.ErrBusy):
					return exit.Failedf("%w: wait until the other training has ended", err)
				case errors.Is(err, fit.ErrNoItems): // the command line is right
					return failed(err)
				case err != nil:
					return err
				}
				for _, m := range t.LeftOut {
					e.warnf("modality %s is left out: no item to learn from has it", m)
				}
				return e.printSpace(ctx, coll, t.Space, "trained on "+term.Plural(t.Items, "item", "items")+": ")
			})
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.Activate, "activate", false, "make the new space the active one, as the first always is")
	return cmd
}

// printSpace prints a new space.
func (e *env) printSpace(ctx context.Context, coll *cluster.Collection, made db.Space, what string) error {
	spaces, err := coll.Spaces(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(spaces, func(s cluster.Space) bool { return s.Space == made })
	if i < 0 {
		return exit.Failedf("collection %s has no space %d: somebody has dropped it meanwhile", coll.Name(), made)
	}
	s := spaces[i]
	if e.json {
		return e.PrintJSON(s)
	}
	e.Printf("%sspace %d of collection %s: codes of %d bits, of %s; it is %s\n", what, s.Space, coll.Name(), s.Bits, term.Plural(s.Items, "item", "items"),
		strings.Replace(string(s.State), "standby", "standing by", 1))
	if s.State != db.SpaceActive {
		e.Printf("fddhdb-cluster activate %s %d makes it the one that searches use\n", coll.Name(), s.Space)
	}
	return nil
}
