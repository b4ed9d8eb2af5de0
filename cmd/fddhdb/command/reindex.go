package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func reindexCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var opt db.ReindexOptions
	cmd := &cobra.Command{
		Use:     "reindex DIR",
		Short:   "Make the codes of all items again, in a new space",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Reindex makes a new space with the latest model of another one, and a code in it for
			every item. Items without labels then have the codes that the projections of today
			give. The items and the other space stay as they are. When the new space is complete
			it stands by: activate makes searches use it.

			An interrupted reindex goes on in the background when the database is opened next,
			and reindex without --space then waits for it. Models shows how far a space is; drop
			gives it up.`),
		Example: usage.Example(`
			fddhdb reindex wiki.db
			fddhdb reindex wiki.db --space 1`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				bar := e.NewProgress()
				defer bar.End()
				begun := false
				opt.Space = space.n
				opt.Progress = func(stage string, done, total int64) {
					begun = true
					bar.Report(stage, done, total)
				}
				r, err := c.Reindex(cmd.Context(), opt)
				bar.End()
				if begun && errors.Is(err, context.Canceled) {
					return exit.Wrap(err, "what is done is kept: reindex goes on with it, fddhdb models shows how far it is")
				}
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(r)
				}
				e.printReindexing(args[0], &o, r)
				return nil
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "the space whose model it takes, by number `N` (default: the one that is being built, or the active one)")
	return cmd
}

func (e *env) printReindexing(dir string, o *common, r *db.Reindexing) {
	from := ""
	if r.Parent != 0 {
		from = " from space " + orNone(r.Parent)
	}
	e.Printf("space %d of collection %s made%s: %s with a code, in %s\n",
		r.Space, o.collection, from, term.Plural(r.Items, "item", "items"), term.Seconds(r.Seconds))
	e.Printf("%s\n", spaceHint(dir, o.collection, r.Space, r.Active))
}

// spaceHint returns whether searches use a new space, and if not how to make them.
func spaceHint(dir, collection string, space db.Space, active bool) string {
	if active {
		return "it is active: searches use it"
	}
	of := ""
	if collection != "main" {
		of = " --collection " + collection
	}
	n := orNone(space)
	return "it stands by: compare it by search and eval with --space " + n + ",\n" +
		"and make it the active one by fddhdb activate " + dir + of + " --space " + n
}
