package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/beam"
)

func buildCommand() *cobra.Command {
	var in inputFlags
	var o runFlags
	opt := beam.BuildOptions{Shards: 1}
	cmd := &cobra.Command{
		Use:   "build --vectors NAME=GLOB... --model FILE --shards N --out FOLDER",
		Short: "Build databases, a shard each",
		Long: strings.TrimSpace(`
Build makes N databases of the items, each with a share of the keys, with a space of
codes by the model, and stores each in a repository of backups: FOLDER/shard-0000,
FOLDER/shard-0001 and so on. build.json, which is written last, lists them. fddhdb
restore FOLDER/shard-0000 DIR makes a database of one.

The shard of a key is its XXH64 modulo N. An item has the code in its shard that it
would have in one database of all items, so the nearest of all shards together
are the nearest of that.

Items without keys are numbered in the order of the input. Of items with the same key
the last one stays.

A run that was killed is run again with the same flags, and makes what is missing.`),
		Example: `  fddhdb-beam build --items 'part-*.parquet' --model shop.model --shards 16 \
      --out shards
  fddhdb-beam build --vectors image='img/*.npy' --vectors text='txt/*.npy' \
      --keys 'keys/*.txt' --model shop.model --shards 4 --out s3://shop/shards`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Out == "" {
				return exit.Usagef("--out FOLDER is missing: where the shards go")
			}
			return o.run(cmd, opt.Out, func(r *beam.Run) error {
				b, err := beam.Build(cmd.Context(), in.input(), opt, r)
				if err != nil {
					return err
				}
				if err := o.left(b.Rejected); err != nil {
					return err
				}
				if o.json {
					return o.printer.PrintJSON(b)
				}
				var rows [][]any
				replaced := 0
				for _, s := range b.Shards {
					rows = append(rows, []any{s.Repository, term.CountCell(s.Items), s.Backup})
					replaced += s.Replaced
				}
				o.printer.PrintTable([]term.Column{term.Left("repository"), term.Right("items"),
					term.Left("backup")}, rows)
				o.printer.Printf("\n%s: %s in %s\n", opt.Out, term.Plural(b.Items, "item", "items"),
					term.Plural(len(b.Shards), "shard", "shards"))
				if replaced > 0 {
					o.printer.Printf("%s had a key that came again: the last one of each key is there\n",
						term.Plural(replaced, "item", "items"))
				}
				return nil
			})
		},
	}
	in.register(cmd.Flags())
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&opt.Model, "model", "",
		"a model, the `FILE` of train or of fddhdb export --model (default: none, and no codes)")
	cmd.Flags().StringVar(&opt.Out, "out", "", "the `FOLDER` that the repositories are written to")
	cmd.Flags().IntVar(&opt.Shards, "shards", 1, "`N` databases")
	return cmd
}
