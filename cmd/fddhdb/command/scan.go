package command

import (
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

func scanCommand(e *env) *cobra.Command {
	var o common
	var limit int
	cmd := &cobra.Command{
		Use:     "scan DIR",
		Short:   "List the items",
		GroupID: groupLook,
		Long: prose(`
			Scan lists the items in database order, which is the order in which their keys
			were first stored: a line each, with key, labels and code. With --json it
			prints them whole, as get does.`),
		Example: example(`
			fddhdb scan wiki.db --limit 10
			fddhdb scan wiki.db --json > items.jsonl`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("limit") && limit < 1 {
				return usageErrorf("--limit %d: 1 or more items are possible", limit)
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				n := 0
				for it, err := range c.Items(cmd.Context()) {
					if err != nil {
						return err
					}
					if o.json {
						err = e.printJSON(newItemJSON(it))
					} else {
						e.printf("%-15s %-24s %s\n", plain(it.Key), orDash(plain(strings.Join(it.Labels, ","))), orDash(hex.EncodeToString(it.Code)))
					}
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
	cmd.Flags().IntVar(&limit, "limit", 0, "stop after `N` items (default: all)")
	whereFlag(cmd)
	return cmd
}

// orDash stands in for what is empty, so that columns stay columns.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
