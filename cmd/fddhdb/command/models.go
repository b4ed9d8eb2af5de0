package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func modelsCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	var pin, unpin uint32
	cmd := &cobra.Command{
		Use:     "models DIR",
		Short:   "List the spaces of codes and the revisions of their models",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Models lists the spaces of codes that a collection has, and of each the
			revisions that are kept: the one that training made, those that are pinned, and
			the last 8.

			A space is what train or reindex makes: a code for every item, comparable with the
			others in it. Searches use the active space. Others stand by: compare them (--space),
			activate them or drop them. A revision is what update makes of the projections of a
			space; the codes that items have stay.

			Of a space, parent is the space whose model it took over. The aim is what its
			projections learn of labels (see train), with the prior. Taught counts the items that
			its projections have learned from, pending those that have not taught yet.

			Of a revision, drift says for each modality how far new items were from those of the
			training, before they taught: how much more of what labels teach the projections miss,
			on a sample. It is near 0 for items like those of the training. Above 0.2 the data has
			moved away from the model: train again, and compare. A space that was learned without
			labels has one revision; stats tells of its drift. On a terminal a line of blocks shows
			how drift has gone.

			With --json it prints an object a line for each space, with the report of its training
			and checksums.`),
		Example: usage.Example(`
			fddhdb models wiki.db
			fddhdb models wiki.db --space 1 --json
			fddhdb models wiki.db --pin 3`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			switch {
			case flags.Changed("pin") && flags.Changed("unpin"):
				return exit.Usagef("models takes one of --pin and --unpin, not both")
			case flags.Changed("pin") && pin == 0, flags.Changed("unpin") && unpin == 0:
				return exit.Usagef("--pin and --unpin: revisions are numbered from 1")
			}
			with := e.lookAtCollection
			if pin != 0 || unpin != 0 {
				with = e.withCollection
			}
			return with(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				if err := space.check(c); err != nil {
					return err
				}
				for _, flag := range []struct {
					name     string
					revision uint32
				}{{"--pin", pin}, {"--unpin", unpin}} {
					if flag.revision == 0 {
						continue
					}
					if err := c.PinRevision(cmd.Context(), space.n, flag.revision, flag.name == "--pin"); err != nil {
						return revisionError(flag.name, flag.revision, err)
					}
				}
				items, err := c.Count(cmd.Context(), "")
				if err != nil {
					return err
				}
				spaces, err := c.Spaces(cmd.Context())
				if err != nil {
					return err
				}
				if space.given() {
					spaces = only(spaces, space.n)
				}
				if !o.json {
					e.printSpaces(c.Name(), spaces, items)
					return nil
				}
				for _, s := range spaces {
					if err := e.PrintJSON(s); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	term.PrintsObjects(cmd)
	space.register(cmd, "only space `N`; with --pin and --unpin the space (default: the active one)")
	cmd.Flags().Uint32Var(&pin, "pin", 0, "keep revision `R`, however many come after it")
	cmd.Flags().Uint32Var(&unpin, "unpin", 0, "keep revision `R` no longer than others; it goes when the next one comes")
	return cmd
}

// only returns the space with number n, in a slice.
func only(spaces []db.SpaceInfo, n db.Space) []db.SpaceInfo {
	for i := range spaces {
		if spaces[i].Space == n {
			return spaces[i : i+1]
		}
	}
	return nil
}
