package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/beam"
)

// damaged is an error that says itself what to do.
type damaged struct{ error }

func (e damaged) Unwrap() error { return e.error }

// Advised keeps exit.Message from advice about databases.
func (damaged) Advised() {}

func verifyCommand() *cobra.Command {
	var o runFlags
	cmd := &cobra.Command{
		Use:   "verify FOLDER",
		Short: "Restore and check the shards of a build",
		Long: strings.TrimSpace(`
Verify restores each shard of a build to a temporary folder, and checks it: the files by
their SHA-256, the database as fddhdb verify --deep does, the number of its items, and
that each key belongs to the shard. Findings are printed, and end it with code 3.`),
		Example: "  fddhdb-beam verify shards",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("verify needs the folder of a build: fddhdb-beam verify FOLDER")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args[0], func(r *beam.Run) error {
				v, err := beam.Verify(cmd.Context(), args[0], r)
				if err != nil {
					return err
				}
				o.bar.End()
				if o.json {
					err = o.printer.PrintJSON(v)
				} else {
					for _, f := range v.Findings {
						o.printer.Printf("%s\n", f)
					}
					o.printer.Printf("%s in %s, %s made again and compared: %s\n",
						term.Plural(v.Items, "item", "items"), term.Plural(v.Shards, "shard", "shards"),
						term.Plural(v.Codes, "code", "codes"),
						term.Plural(len(v.Findings), "finding", "findings"))
				}
				if err == nil && len(v.Findings) > 0 {
					err = damaged{fmt.Errorf("%w: remove the folder and the .json of each such shard in %s, and build it again with the same flags", db.ErrCorrupt, args[0])}
				}
				return err
			})
		},
	}
	o.register(cmd.Flags())
	_ = cmd.Flags().MarkHidden("rejected") // no rows are read
	return cmd
}
