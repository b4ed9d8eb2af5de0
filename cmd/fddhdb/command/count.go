package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

func countCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count DIR",
		Short:   "Count the items",
		GroupID: groupLook,
		Long:    "Count prints how many items a collection has, or how many match --where.",
		Example: example(`
			fddhdb count wiki.db
			fddhdb count wiki.db --where "label = 'art' AND has(image)"
			fddhdb count wiki.db --collection hashes --json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				n, err := c.CountWhere(cmd.Context(), where.expr)
				if err != nil {
					return where.wrap(err)
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
	where.register(cmd)
	futureFlag(cmd, "limit", "N", "stop counting at so many", "")
	return cmd
}
