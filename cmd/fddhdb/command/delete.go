package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

func deleteCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "delete DIR KEY...",
		Short:   "Delete items by their keys",
		GroupID: groupItems,
		Long: prose(`
			Delete deletes the items with these keys, all in one commit, and says how many
			there were. A key without an item is no error.`),
		Example: example(`
			fddhdb delete wiki.db 17 18`),
		Args: dirAndKeys(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				n, err := c.Delete(cmd.Context(), args[1:]...)
				if err != nil {
					return err
				}
				if o.json {
					return e.printJSON(map[string]int{"deleted": n})
				}
				e.printf("deleted %s\n", plural(n, "item", "items"))
				return nil
			})
		},
	}
	o.register(cmd)
	whereFlag(cmd)
	return cmd
}
