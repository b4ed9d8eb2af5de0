package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func collectionsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "collections DIR",
		Short:   "List the collections",
		GroupID: groupLook,
		Long: usage.Prose(`
			Collections lists the collections of a database; with --json an object a line,
			with the figures that stats has. One that is index-only is a copy without
			vectors: it can be searched, and not written to.`),
		Example: usage.Example(`
			fddhdb collections wiki.db`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAt(args[0], func(d *db.DB) error {
				s, err := d.Stats()
				if err != nil {
					return err
				}
				if o.json {
					form, err := jsonform.NewStats(cmd.Context(), d, s)
					if err != nil {
						return err
					}
					for _, c := range form.Collections {
						if err := e.PrintJSON(c); err != nil {
							return err
						}
					}
					return nil
				}
				var rows [][]any
				for _, c := range s.Collections {
					var names []string
					for _, m := range c.Modalities {
						names = append(names, m.Name)
					}
					var bits any = term.NoCell
					if c.Trained {
						bits = c.Bits
					}
					modalities := term.TextCell(strings.Join(names, ", "))
					if c.IndexOnly {
						modalities = modalities.Remark(" (index-only)")
					}
					rows = append(rows, []any{term.TextCell(c.Name), term.CountCell(c.Items), term.CountCell(c.Labels), bits,
						term.CountCell(c.DistinctCodes), modalities})
				}
				e.PrintTable([]term.Column{term.Left("collection"), term.Right("items"), term.Right("labels"),
					term.Right("bits"), term.Right("distinct codes"), term.Left("modalities")}, rows)
				return nil
			})
		},
	}
	o.registerJSON(cmd)
	term.PrintsObjects(cmd)
	return cmd
}
