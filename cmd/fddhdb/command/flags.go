package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// common are flags that most verbs have.
type common struct {
	collection string
	space      spaceFlag // not registered if the verb reads no codes
	json       bool
}

// register adds the flags to a verb.
func (o *common) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.collection, "collection", "main", "the collection `NAME` to work on")
	o.registerJSON(cmd)
}

func (o *common) registerJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
}

// registerSpace adds --space to a verb that reads codes.
func (o *common) registerSpace(cmd *cobra.Command) {
	o.space.register(cmd, "look at the codes of space `N` (default: the active one)")
}

// dirArg accepts the folder of a database as the only argument.
func dirArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
	case len(args) > 1:
		return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[1], cmd.Use)
	}
	return nil
}

// dirAndKeys accepts a folder and from least to most keys. A most of 0 means any
// number.
func dirAndKeys(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return exit.Usagef("%s needs the folder of a database: fddhdb %s", cmd.Name(), cmd.Use)
		case len(args)-1 < least:
			return exit.Usagef("%s needs the key of an item: fddhdb %s", cmd.Name(), cmd.Use)
		case most > 0 && len(args)-1 > most:
			return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[most+1], cmd.Use)
		}
		for _, key := range args[1:] {
			if key == "" || len(key) > db.MaxKeyBytes {
				return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
			}
		}
		return nil
	}
}
