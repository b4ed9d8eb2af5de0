package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
)

// An env is the state that verbs share. It belongs to the goroutine that runs the verb.
type env struct {
	*term.Printer
	stdin io.Reader
	link  link
	json  bool // print JSON
}

// run runs a command line, given without the name of the program.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	e := &env{Printer: term.NewPrinter(stdout, stderr), stdin: stdin}
	root := rootCommand(e)
	root.SetArgs(append([]string{}, args...)) // with nil cobra would take the arguments of the process
	return e.Scope(func() error { return root.ExecuteContext(ctx) })
}

// Groups of verbs in help.
const (
	groupCluster = "cluster"
	groupItems   = "items"
	groupFind    = "find"
	groupSpaces  = "spaces"
	groupCare    = "care"
	groupOther   = "other"
)

func rootCommand(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "fddhdb-cluster VERB [flags]",
		Short: "A database that several machines serve, while any of them may be lost",
		Long: usage.Prose(`
			fddhdb-cluster serves collections of items from several machines. The items are
			cut into shards by their keys, several nodes keep each shard, and several NATS
			servers keep the log of each shard. A write is acknowledged when its log has it
			durably; searches are exact, as those of one database.

			See it work first, without any preparation: fddhdb-cluster demo.

			Every verb explains itself: fddhdb-cluster help VERB. With --json it prints one
			JSON object, or one a line where there are several, in the forms of fddhdb.
			Results go to stdout, errors and remarks to stderr. The exit code is 0 when it is
			done, 1 when it failed, 2 when the command line was wrong, and 3 when stored data
			is corrupt.

			FDDHDB_SERVERS, FDDHDB_CLUSTER and FDDHDB_USER are used where the flags of these
			names are not given; so are, each with the path of a file, FDDHDB_CREDS,
			FDDHDB_NKEY, FDDHDB_PASSWORD_FILE, FDDHDB_TLS_CA, FDDHDB_TLS_CERT and
			FDDHDB_TLS_KEY.`),
		Example: usage.Example(`
			Start three NATS servers with JetStream and sync_interval: always, then three
			nodes, each on a machine of its own, and make a cluster:

			export FDDHDB_SERVERS=nats://10.0.0.1:4222,nats://10.0.0.2:4222,nats://10.0.0.3:4222
			fddhdb-cluster node --name a --dir /var/lib/fddhdb --creds node.creds

			export FDDHDB_CREDS=admin.creds
			fddhdb-cluster create --shards 16
			fddhdb-cluster init photos --modality image:512 --modality text:512 --shared`),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			e.link.surroundings(cmd.Flags())
			if cmd.Flags().Changed("timeout") && e.link.timeout <= 0 {
				return exit.Usagef("--timeout %v: a time above 0 is expected, such as 10s", e.link.timeout)
			}
			return e.BeginOutput(cmd, term.ModeTable)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			cmd.SetOut(e.Stderr)
			if err := cmd.Help(); err != nil {
				return err
			}
			return exit.Usagef("a verb is missing")
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	f := root.PersistentFlags()
	e.link.register(f)
	f.BoolVar(&e.json, "json", false, "print JSON")
	root.SetIn(e.stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetFlagErrorFunc(usage.FlagError)
	usage.SetHelp(root, "Flags of every verb:", anyVerb, unknownVerb)
	root.AddGroup(
		&cobra.Group{ID: groupCluster, Title: "Clusters:"},
		&cobra.Group{ID: groupItems, Title: "Collections and items:"},
		&cobra.Group{ID: groupFind, Title: "Find and count:"},
		&cobra.Group{ID: groupSpaces, Title: "Models and their spaces of codes:"},
		&cobra.Group{ID: groupCare, Title: "Look after a cluster:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.AddCommand(
		demoCommand(e), nodeCommand(e), createCommand(e), restoreCommand(e), statusCommand(e),
		initCommand(e), dropCommand(e), collectionsCommand(e), importCommand(e), putCommand(e), getCommand(e), deleteCommand(e),
		searchCommand(e), countCommand(e), facetsCommand(e), labelsCommand(e),
		trainCommand(e), updateCommand(e), spacesCommand(e), activateCommand(e), dropSpaceCommand(e),
		backupCommand(e), moveCommand(e), drainCommand(e), growCommand(e),
	)
	root.SetHelpCommandGroupID(groupOther)
	return root
}

// arguments requires least to most arguments of a verb; most < 0 is any number. Errors call them what.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, a := range args {
			if a == "" && i < least {
				args = args[:i]
				break
			}
		}
		switch {
		case len(args) < least:
			return exit.Usagef("%s needs %s: %s", cmd.Name(), what, usageOf(cmd))
		case most >= 0 && len(args) > most:
			return exit.Usagef("%s does not know what to do with %q: %s", cmd.Name(), args[most], usageOf(cmd))
		}
		return nil
	}
}

// usageOf returns the usage line of a verb.
func usageOf(cmd *cobra.Command) string {
	return strings.TrimSuffix(cmd.UseLine(), " [flags]")
}

// message returns the text of an error for the user. Prefixes may stand anywhere: errors hold other errors.
func message(err error) string {
	text := exit.Message(err)
	for _, part := range []string{"fddhdb: ", "invalid argument: "} {
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

// warnf writes a warning to stderr.
func (e *env) warnf(format string, args ...any) { e.Notef("fddhdb-cluster: "+format, args...) }

// forever is the deadline of imports, trainings and backups, which may take hours. Without a deadline a call
// would get --timeout.
const forever = 30 * 24 * time.Hour

// failed marks an error that the command line has not caused.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return exit.Failedf("%w", err)
}
