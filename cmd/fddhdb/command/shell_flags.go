package command

import (
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// shellOptions are the flags of the command line without a verb. mode belongs to all
// verbs.
type shellOptions struct {
	lines    []string
	readOnly bool
	version  bool
	mode     term.Mode
}

func (o *shellOptions) register(root *cobra.Command) {
	o.mode = term.ModeTable
	root.Flags().StringArrayVarP(&o.lines, "command", "c", nil, "run the `LINE` in the shell and leave; repeat it for more")
	root.Flags().BoolVar(&o.readOnly, "readonly", false, "the shell only looks at the database")
	root.Flags().BoolVar(&o.version, "version", false, "print the version, as the verb does")
	root.PersistentFlags().Var(&o.mode, "mode", "print results as table, csv, json, jsonl, markdown or line; with any verb, where --json overrules it")
}

func (o *shellOptions) given(root *cobra.Command) bool {
	return root.Flags().Changed("command") || o.readOnly
}
