package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func activateCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	cmd := &cobra.Command{
		Use:     "activate DIR --space N",
		Short:   "Make another space of codes the active one",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Activate makes the space N, which stands by, the one that searches use, at once
			and whole. The one before stands by from then on, is kept current by every write
			like any other, and rollback goes back to it. Models lists the spaces; search
			and eval with --space compare them beforehand.`),
		Example: usage.Example(`
			fddhdb eval wiki.db --space 2 --vectors text=query_text.npy --labels query_labels.npy
			fddhdb activate wiki.db --space 2`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !space.given() {
				return exit.Usagef("--space N is missing: which space to activate; fddhdb models %s lists them", args[0])
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				before, err := c.Stats()
				if err != nil {
					return err
				}
				if err := c.Activate(cmd.Context(), space.n); err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(activationJSON{space.n, before.Space})
				}
				if before.Space == space.n {
					e.Printf("space %d of collection %s is the active one already\n", space.n, c.Name())
					return nil
				}
				e.Printf("space %d of collection %s is the active one now; space %d stands by, and rollback goes back to it\n",
					space.n, c.Name(), before.Space)
				return nil
			})
		},
	}
	o.register(cmd)
	space.register(cmd, "the space to activate, by number `N`")
	return cmd
}

// activationJSON is the --json form of activate and rollback.
type activationJSON struct {
	Space  db.Space `json:"space"`  // active now
	Before db.Space `json:"before"` // active before; the same if nothing has changed
}
