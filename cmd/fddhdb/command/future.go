package command

import "github.com/spf13/cobra"

// futureCommands are the verbs of the contract that are not built yet.
func futureCommands() []*cobra.Command {
	var cmds []*cobra.Command
	for _, verb := range []struct{ use, short string }{
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
