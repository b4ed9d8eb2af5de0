package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func countCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count DIR",
		Short:   "Count the items",
		GroupID: groupLook,
		Long: usage.Prose(`
			Count prints how many items a collection has, or how many match --where.`),
		Example: usage.Example(`
			fddhdb count wiki.db
			fddhdb count wiki.db --where "label = 'art' AND has(image)"
			fddhdb count wiki.db --collection hashes --json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				n, err := c.Count(cmd.Context(), where.Expr)
				if err != nil {
					return where.wrap(err)
				}
				if o.json {
					return e.PrintJSON(map[string]int{"count": n})
				}
				e.Printf("%d\n", n)
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	return cmd
}
