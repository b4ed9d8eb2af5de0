package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

// targetFlag is --to, for verbs that read codes but search for no items.
type targetFlag struct{ to string }

func (t *targetFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.to, "to", "", "the codes by which searches for the modality `NAME` find items")
}

// checkTarget refuses a --to that is no modality, and a missing --to if each modality
// has codes of its own.
func checkTarget(c *db.Collection, schema db.Schema, stats *db.CollectionStats, to string) error {
	if to != "" {
		_, err := source.FindModality(c.Name(), schema, "--to", to)
		return err
	}
	if len(stats.Views) == 0 {
		return nil
	}
	var names []string
	for _, v := range stats.Views {
		names = append(names, v.Target)
	}
	return exit.Usagef("--to NAME is missing: collection %q has codes for each target modality, %s", c.Name(), strings.Join(names, " and "))
}
