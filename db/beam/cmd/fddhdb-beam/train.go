package main

import (
	"strings"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/beam"
)

func trainCommand() *cobra.Command {
	var in inputFlags
	var o runFlags
	var settings flags.Settings
	var out string
	cmd := &cobra.Command{
		Use:   "train --vectors NAME=GLOB... --labels GLOB --model FILE",
		Short: "Learn a model",
		Long: strings.TrimSpace(`
Train learns a model as fddhdb train does, from items in files, and writes it to
FILE: the bytes that fddhdb export --model would write of a collection into which
these files have been imported, in the order of their names, and that was
trained with the same settings. fddhdb import --model takes it, and so do
encode and build.

The n-th files of each glob belong together, row i of each to one item.

The methods joint and paper are not possible: they hold numbers for each item.`),
		Example: `  fddhdb-beam train --vectors image='img/*.npy' --vectors text='txt/*.npy' \
      --labels 'labels/*.npy' --bits 64 --seed 1 --model shop.model
  fddhdb-beam train --items 'part-*.parquet' --model shop.model`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return exit.Usagef("--model FILE is missing: where the model goes")
			}
			if err := replaces("--model", out, "FDHF"); err != nil {
				return err
			}
			if err := settings.Complete(cmd.Flags()); err != nil {
				return err
			}
			if err := settings.LeaveOpen(cmd.Flags()); err != nil {
				return err
			}
			return o.run(cmd, out, func(r *beam.Run) error {
				t, err := beam.Train(cmd.Context(), in.input(), settings.TrainOptions, r)
				if err != nil {
					return err
				}
				if err := t.Save(cmd.Context(), out); err != nil {
					return err
				}
				if err := o.left(t.Rejected); err != nil {
					return err
				}
				for _, name := range t.LeftOut {
					o.printer.Notef("fddhdb-beam: no item to learn from has a vector of modality %q, so nothing is learned of it", name)
				}
				for _, w := range t.Report.Warnings() {
					o.printer.Notef("fddhdb-beam: warning: %s", w)
				}
				if o.json {
					return o.printer.PrintJSON(struct {
						*fit.Report
						LeftOut  []string        `json:"left_out,omitempty"`
						Rejected []beam.Rejected `json:"rejected,omitempty"`
					}{&t.Report, t.LeftOut, t.Rejected})
				}
				o.printer.Printf("%s: codes of %d bits, by a model that %s with %s taught\n", out,
					t.Report.Bits,
					term.Plural(t.Report.TrainItems, "item", "items"),
					term.Plural(t.Report.Labels, "label", "labels"))
				return nil
			})
		},
	}
	in.register(cmd.Flags())
	o.register(cmd.Flags())
	settings.Register(cmd.Flags())
	cmd.Flags().StringVar(&out, "model", "", "the `FILE` that the model is written to")
	return cmd
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.Usagef("%s does not know what to do with %q: quote globs", cmd.Name(), args[0])
	}
	return nil
}
