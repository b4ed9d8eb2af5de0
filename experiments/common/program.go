package common

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

// New returns the command of an experiment, which takes the arguments that args allows.
func New(use, short, long string, args cobra.PositionalArgs,
	run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + long, Args: args, RunE: run,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
	}
}

// Main runs the command line of the process, NAME and its flags, and returns the exit code. An interrupt ends
// the context.
func Main(experiments ...*cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := New("experiments NAME [flags]", "Repeat the measurements behind the documents of fddhdb",
		"experiments help NAME says what one does.", cobra.NoArgs,
		func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	root.AddCommand(experiments...)
	root.CompletionOptions.DisableDefaultCmd = true
	if err := Execute(ctx, root, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "experiments:", err)
		return 1
	}
	return 0
}

// Execute runs a command with arguments that do not have its name.
func Execute(ctx context.Context, cmd *cobra.Command, args []string, stdout, stderr io.Writer) error {
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	return cmd.ExecuteContext(ctx)
}
