package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func scanCommand(e *env) *cobra.Command {
	var o common
	var limit int
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "scan DIR",
		Short:   "List the items",
		GroupID: groupLook,
		Long: usage.Prose(`
			Scan lists the items in database order, which is the order in which their keys
			were first stored: a table of their keys, labels, fields and codes, or nothing
			if there is no item. The first 200 items decide on the widths of its columns; on
			a terminal longer text is cut. With --json it prints items whole, as get does.

			--where keeps to the items that match an expression, such as

			  label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))

			  NAME = VALUE          the value of a field, also != < <= > >=; a VALUE is a
			                        number, a 'string' with '' for a quote in it, true
			                        or false
			  NAME IN (VALUE, ...)  one of several
			  NAME LIKE 'abc%'      the string begins with abc; \% and \_ stand for
			                        themselves
			  NAME IS NULL          the item lacks the field, also IS NOT NULL
			  label = 'x'           x is among the labels of the item, also != and IN
			  has(NAME)             the item has a vector of the modality, or a value of
			                        the field
			  has(label)            the item has labels
			  NOT, AND, OR          bind in this order, and less than parentheses
			A comparison with a field that an item lacks is false, that with != too. An
			index of the field makes it fast; otherwise the items are read.`),
		Example: usage.Example(`
			fddhdb scan wiki.db --limit 10
			fddhdb scan wiki.db --where "label = 'art' AND NOT has(image)"
			fddhdb scan wiki.db --json > items.jsonl`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && limit < 1 {
				return exit.Usagef("--limit %d: 1 or more items are possible", limit)
			}
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				show, end, err := e.itemPrinter(c, o.json)
				if err != nil {
					return err
				}
				defer end()
				n := 0
				for it, err := range c.Items(cmd.Context(), where.Expr) {
					if err != nil {
						return where.wrap(err)
					}
					err = show(it)
					if n++; err != nil || n == limit {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "stop after `N` items (default: all)")
	where.register(cmd)
	return cmd
}
