package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func dropCommand(e *env) *cobra.Command {
	var o common
	var space spaceFlag
	cmd := &cobra.Command{
		Use:     "drop DIR (--space N | --collection NAME)",
		Short:   "Delete a space of codes, or a collection",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Drop --space N deletes a space of the collection: its codes, its model and its
			revisions, and not the items. It may be one that is being built; it cannot be
			the active one, as searches use that: activate another one first.

			Drop --collection NAME without --space deletes that collection, its items and
			all of its spaces. Nothing asks whether you mean it, and nothing brings it
			back. Either is done whole or not at all; compact then gives back the disk
			space at once.`),
		Example: usage.Example(`
			fddhdb drop wiki.db --space 1
			fddhdb drop wiki.db --collection hashes`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !space.given() && !cmd.Flags().Changed("collection") {
				return exit.Usagef("drop needs to know what: --space N, or --collection NAME for all of a collection")
			}
			return e.withCollection(args[0], &o, func(d *db.DB, c *db.Collection) error {
				if !space.given() {
					n, err := c.Count(cmd.Context(), "")
					if err == nil {
						err = d.DropCollection(cmd.Context(), c.Name())
					}
					if err != nil {
						return err
					}
					if o.json {
						return e.PrintJSON(droppedJSON{Collection: c.Name(), Items: &n})
					}
					e.Printf("dropped collection %s with %s\n", c.Name(), term.Plural(n, "item", "items"))
					return nil
				}
				if err := space.check(c); err != nil {
					return err
				}
				if err := c.DropSpace(cmd.Context(), space.n); errors.Is(err, db.ErrInvalid) {
					return exit.Failedf("%w", err) // the command line is right; the space is the active one
				} else if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(droppedJSON{Collection: c.Name(), Space: space.n})
				}
				e.Printf("dropped space %d of collection %s\n", space.n, c.Name())
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Lookup("collection").Usage = "the collection `NAME` to delete, or with --space that the space is of (main)"
	cmd.Flags().Lookup("collection").DefValue = ""
	space.register(cmd, "the space to delete, by number `N`")
	return cmd
}

// droppedJSON is the --json form of drop.
type droppedJSON struct {
	Collection string   `json:"collection"`
	Space      db.Space `json:"space,omitempty"` // absent: the whole collection
	Items      *int     `json:"items,omitempty"` // items that it had
}
