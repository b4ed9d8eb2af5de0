package command

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func getCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "get DIR KEY...",
		Short:   "Print items by their keys",
		GroupID: groupItems,
		Long: usage.Prose(`
			Get prints the items with these keys, with --json one a line and with all
			their vectors. The code is that of the active space, or with --space N of that
			one, in hexadecimal; code_from says what it was made from: labels, fused (its
			vectors), a modality (its vector of that alone), or given.

			If a key has no item, the others are printed, and the exit code is 1. A key that
			begins with - stands behind --, here and with put and delete.`),
		Example: usage.Example(`
			fddhdb get wiki.db 0 1 2
			fddhdb get wiki.db 0 --json
			fddhdb get wiki.db -- -k`),
		Args: dirAndKeys(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAtCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				show, end, err := e.wholeItemPrinter(c, o.json)
				if err != nil {
					return err
				}
				defer end()
				var missing []string
				for _, key := range args[1:] {
					it, err := c.Get(cmd.Context(), key)
					if errors.Is(err, db.ErrNotFound) {
						missing = append(missing, key)
						continue
					}
					if err == nil {
						err = show(it)
					}
					if err != nil {
						return err
					}
				}
				if len(missing) > 0 {
					return exit.Failedf("not found in collection %q: %s", c.Name(), strings.Join(missing, ", "))
				}
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	return cmd
}
