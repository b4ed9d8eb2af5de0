package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func deleteCommand(e *env) *cobra.Command {
	var o common
	var where whereFlag
	cmd := &cobra.Command{
		Use:     "delete DIR (KEY... | --where EXPR)",
		Short:   "Delete items by their keys or by what they are",
		GroupID: groupItems,
		Long: usage.Prose(`
			Delete deletes the items with these keys, or all that match --where, in one
			commit, and says how many there were. A key without an item is no error. Count
			with the same --where says beforehand how many there are.`),
		Example: usage.Example(`
			fddhdb delete wiki.db 17 18
			fddhdb delete shop.db --where "sold = true AND year <= 2020"`),
		Args: func(cmd *cobra.Command, args []string) error {
			if !where.Given() {
				if len(args) == 1 {
					return exit.Usagef("delete needs the key of an item, or --where EXPR: fddhdb %s", cmd.Use)
				}
				return dirAndKeys(1, 0)(cmd, args)
			}
			if len(args) > 1 {
				return exit.Usagef("delete takes keys or --where, not both: %q", args[1])
			}
			return dirArg(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(args[0], &o, func(d *db.DB, c *db.Collection) error {
				where.warnOfLabels(e, c)
				var n int
				var err error
				if where.Given() {
					n, err = c.DeleteWhere(cmd.Context(), where.Expr)
				} else {
					n, err = c.Delete(cmd.Context(), args[1:]...)
				}
				if err != nil {
					return where.wrap(err)
				}
				if stats, err := d.Stats(); err == nil && stats.Activity.FreeBytes < stats.Activity.ReserveBytes {
					a := &stats.Activity
					e.Warnf("the disk of %s has %s free, and writes leave %s: fddhdb compact %s gives back the room of deleted items",
						args[0], term.Size(a.FreeBytes), term.Size(a.ReserveBytes), args[0])
				}
				if o.json {
					return e.PrintJSON(map[string]int{"deleted": n})
				}
				e.Printf("deleted %s\n", term.Plural(n, "item", "items"))
				return nil
			})
		},
	}
	o.register(cmd)
	where.register(cmd)
	return cmd
}
