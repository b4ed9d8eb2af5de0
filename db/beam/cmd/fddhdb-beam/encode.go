package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/beam"
)

func encodeCommand() *cobra.Command {
	var in inputFlags
	var o runFlags
	var opt beam.EncodeOptions
	cmd := &cobra.Command{
		Use:   "encode --vectors NAME=GLOB... --model FILE --out FOLDER",
		Short: "Write the codes of items",
		Long: strings.TrimSpace(`
Encode writes the codes that items would have in a database with a model: files
codes-00000.npy, codes-00001.npy and so on to FOLDER, of 65,536 rows each, uint8
with bits/8 columns, and their keys to keys-00000.txt and so on. fddhdb import
--codes --keys brings them into a collection that is given its codes.

An item with a label that the model knows has the code of its labels, any other that of
its vectors. Items without both have none, and are counted.

A run that was killed is run again with the same flags, and makes what is missing.`),
		Example: `  fddhdb-beam encode --vectors image='img/*.npy' --vectors text='txt/*.npy' \
      --keys 'keys/*.txt' --model shop.model --out codes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opt.Model == "" {
				return exit.Usagef("--model FILE is missing: a model of train, or of fddhdb export --model")
			}
			if opt.Out == "" {
				return exit.Usagef("--out FOLDER is missing: where the codes go")
			}
			return o.run(cmd, opt.Out, func(r *beam.Run) error {
				e, err := beam.Encode(cmd.Context(), in.input(), opt, r)
				if err != nil {
					return err
				}
				if err := o.left(e.Rejected); err != nil {
					return err
				}
				if o.json {
					return o.printer.PrintJSON(e)
				}
				o.printer.Printf("%s: codes of %s in %s\n", opt.Out, term.Plural(e.Items, "item", "items"),
					term.Plural(e.Files, "file", "files"))
				if e.Left > 0 {
					o.printer.Printf("%s have none: neither a label that the model knows nor a vector near any other\n", term.Plural(e.Left, "item", "items"))
				}
				return nil
			})
		},
	}
	in.register(cmd.Flags())
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&opt.Model, "model", "", "a model, the `FILE` of train or of fddhdb export --model")
	cmd.Flags().StringVar(&opt.Out, "out", "", "the `FOLDER` that codes are written to")
	return cmd
}
