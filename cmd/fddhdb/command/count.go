package command

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func countCommand(e *env) *cobra.Command {
	var o common
	var limit int
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "count DIR",
		Short:   "Count the items",
		GroupID: groupLook,
		Long: usage.Prose(`
			Count prints how many items a collection has, or how many match --where. With
			--limit N it stops when it has found N, where that saves time, and prints N at
			most: whether there are so many is known sooner than how many there are.`),
		Example: usage.Example(`
			fddhdb count wiki.db
			fddhdb count wiki.db --where "label = 'art' AND has(image)"
			fddhdb count wiki.db --where "year >= 2020" --limit 1
			fddhdb count wiki.db --collection hashes --json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			most := math.MaxInt
			if cmd.Flags().Changed("limit") {
				if most = limit; limit < 1 {
					return exit.Usagef("--limit %d: 1 or more items are possible", limit)
				}
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				n, err := c.CountUpTo(cmd.Context(), most, where.Expr)
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
	cmd.Flags().IntVar(&limit, "limit", 0, "stop counting at `N` items (default: all)")
	return cmd
}
