package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/db"
)

func collectionsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "collections DIR",
		Short:   "List the collections",
		GroupID: groupLook,
		Long: prose(`
			Collections lists the collections of a database; with --json an object a line,
			with the figures that stats has. One that is index-only is a copy without
			vectors: it can be searched, and not written to.`),
		Example: example(`
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
						if err := e.printJSON(c); err != nil {
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
					var bits any = noCell
					if c.Trained {
						bits = c.Bits
					}
					modalities := textCell(strings.Join(names, ", "))
					if c.IndexOnly {
						modalities.text += " (index-only)"
					}
					rows = append(rows, []any{textCell(c.Name), countCell(c.Items), countCell(c.Labels), bits,
						countCell(c.DistinctCodes), modalities})
				}
				e.printTable([]column{left("collection"), right("items"), right("labels"),
					right("bits"), right("distinct codes"), left("modalities")}, rows)
				return nil
			})
		},
	}
	o.registerJSON(cmd)
	printsObjects(cmd)
	return cmd
}
