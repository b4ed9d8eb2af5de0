package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

func countCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "count DIR",
		Short:   "Count the items",
		GroupID: groupLook,
		Long:    "Count prints how many items a collection has.",
		Example: example(`
			fddhdb count wiki.db
			fddhdb count wiki.db --collection hashes --json`),
		Args: dirArg,
		RunE: func(_ *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				n, err := c.Count()
				if err != nil {
					return err
				}
				if o.json {
					return e.printJSON(map[string]int{"count": n})
				}
				e.printf("%d\n", n)
				return nil
			})
		},
	}
	o.register(cmd)
	whereFlag(cmd)
	futureFlag(cmd, "limit", "N", "stop counting at so many", "")
	return cmd
}
