package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/db"
)

// A whereFlag is --where.
type whereFlag struct{ flags.Where }

func (w *whereFlag) register(cmd *cobra.Command) {
	cmd.Flags().Var(&w.Where, "where", "only items that match, such as \"label = 'cat' AND year >= 2020\": fddhdb help scan")
}

// wrap turns an error about the expression into one about the flag.
func (w *whereFlag) wrap(err error) error {
	var bad *db.WhereError
	if !w.Given() || !errors.As(err, &bad) {
		return err
	}
	return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
}
