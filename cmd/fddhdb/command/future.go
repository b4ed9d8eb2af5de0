package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A notBuiltError is about a part of the contract that later releases will have.
type notBuiltError struct{ instead string }

func (e *notBuiltError) Error() string {
	if e.instead == "" {
		return "not built yet"
	}
	return "not built yet: " + e.instead
}

// futureFlag registers a flag of the contract that is not built yet. instead, if
// not empty, says what to do meanwhile.
func futureFlag(cmd *cobra.Command, name, value, what, instead string) {
	f := cmd.Flags().VarPF(&futureValue{value, instead}, name, "", what+" (not built yet)")
	if value == "bool" {
		f.NoOptDefVal = "true"
	}
}

type futureValue struct{ kind, instead string }

func (v *futureValue) String() string   { return "" }
func (v *futureValue) Type() string     { return v.kind }
func (v *futureValue) Set(string) error { return &notBuiltError{v.instead} }

var _ pflag.Value = (*futureValue)(nil)

// futureCommands are the verbs of the contract that are not built yet.
func futureCommands() []*cobra.Command {
	var cmds []*cobra.Command
	for _, verb := range []struct{ use, short string }{
		{"alter DIR", "Add modalities and fields to a collection"},
		{"explore DIR", "Look at a database in the browser"},
	} {
		cmds = append(cmds, &cobra.Command{
			Use: verb.use, Short: verb.short, GroupID: groupFuture,
			Long: verb.short + ": this verb is not built yet.",
			Args: cobra.ArbitraryArgs,
			// Its flags are no error of their own.
			FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
			RunE: func(cmd *cobra.Command, _ []string) error {
				return usageErrorf("%s is not built yet", cmd.Name())
			},
		})
	}
	return cmds
}
