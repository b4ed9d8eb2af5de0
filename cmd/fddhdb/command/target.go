package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

// targetFlag is --to, for verbs that print no items.
type targetFlag struct{ to string }

func (t *targetFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.to, "to", "", "find items that have the modality `NAME`")
}

// checkTarget refuses a --to that is no modality.
func checkTarget(c *db.Collection, schema db.Schema, to string) error {
	if to == "" {
		return nil
	}
	_, err := source.FindModality(c.Name(), schema, "--to", to)
	return err
}
