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

func rollbackCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var revision uint32
	cmd := &cobra.Command{
		Use:     "rollback DIR",
		Short:   "Go back to the space, or to a revision, before",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Rollback makes the space that was active before the present one active again, at
			once and whole: it takes back an activate, or a train --activate. A second one
			takes back the first.

			--revision R takes back updates instead. It puts the projections of revision R back
			in use, as a new revision of the active space or of --space N. Models lists the
			revisions that are kept. What items have taught since is taken out, and they teach
			again only if you write them again. You can put back a later revision too, but the
			next update starts from what is left. Labels that update --grow-labels has given a
			direction stay: no revision from before that can come back.`),
		Example: usage.Example(`
			fddhdb rollback wiki.db
			fddhdb rollback wiki.db --revision 3`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			toRevision := cmd.Flags().Changed("revision")
			switch {
			case toRevision && revision == 0:
				return exit.Usagef("--revision 0: revisions are numbered from 1")
			case space.given() && !toRevision:
				return exit.Usagef("--space goes with --revision: fddhdb activate %s --space %d makes that space the active one", args[0], space.n)
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				if toRevision {
					return e.restoreRevision(cmd.Context(), c, space.n, revision, o.json)
				}
				return e.rollback(cmd.Context(), c, o.json)
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "with --revision: the space, by number `N` (default: the active one)")
	cmd.Flags().Uint32Var(&revision, "revision", 0, "put revision `R` of the space back in use")
	return cmd
}

// rollback returns to the space before.
func (e *env) rollback(ctx context.Context, c *db.Collection, json bool) error {
	before, err := c.Stats()
	if err != nil {
		return err
	}
	now, err := c.Rollback(ctx)
	if errors.Is(err, db.ErrInvalid) {
		return exit.Failedf("%w", err) // the command line is right; there is no earlier space
	}
	if err != nil {
		return err
	}
	if json {
		return e.PrintJSON(activationJSON{now, before.Space})
	}
	e.Printf("space %d of collection %s is the active one again; space %d stands by\n", now, c.Name(), before.Space)
	return nil
}

// restoreRevision makes a revision current again.
func (e *env) restoreRevision(ctx context.Context, c *db.Collection, space db.Space, revision uint32, json bool) error {
	u, err := c.RestoreRevision(ctx, space, revision)
	if err != nil {
		return revisionError("--revision", revision, err)
	}
	if json {
		return e.PrintJSON(u)
	}
	e.Printf("space %d of collection %s: the projections of revision %d are back in use, as revision %d\n", u.Space, c.Name(), revision, u.Revision)
	if n := u.Forgotten; n > 0 {
		e.Printf("%s taken out again; written again, or by training, they teach\n",
			term.Plural(n, "item that has taught since is", "items that have taught since are"))
	}
	return nil
}

// revisionError adds the flag to the error of a revision that is not kept.
func revisionError(flag string, revision uint32, err error) error {
	if errors.Is(err, db.ErrNotFound) {
		return exit.Usagef("%s %d: %s; fddhdb models lists those that are kept", flag, revision, exit.Reason(err.Error()))
	}
	if errors.Is(err, db.ErrInvalid) {
		return exit.Failedf("%w", err) // the command line is right
	}
	return err
}
