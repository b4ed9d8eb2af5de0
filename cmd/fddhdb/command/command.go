package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/python"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

// Main runs a command line, given without the name of the program, and returns the exit
// code: 0 done, 1 failed, 2 wrong usage, 3 corruption found. An interrupt, SIGTERM or SIGHUP
// cancels the verb, which leaves the database unchanged. A verb that has not stopped
// within seconds ends with the process. A second signal ends the process at once.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, caught := shell.CatchSignals(stderr)
	defer caught.Stop()
	return runLine(ctx, args,
		&run.Env{Printer: term.NewPrinter(stdout, stderr), Stdin: stdin, Signals: caught})
}

func runLine(ctx context.Context, args []string, e *run.Env) int {
	root := rootCommand(e)
	shell.RegisterCompletions(root)
	err := e.Execute(ctx, root, args)
	if err != nil {
		e.PrintError(err)
	}
	return exit.Code(err)
}

// AddVerbs adds to a program the verbs about collections and items, and their groups. Each is a verb of
// fddhdb without DIR. It leaves out verbs that need a list of the items or a folder. It returns the verbs by
// name. An error of a verb may have a command line of fddhdb in its text: see Elsewhere.Words.
func AddVerbs(at *run.Elsewhere, root *cobra.Command, p *term.Printer,
	stdin io.Reader) map[string]*cobra.Command {
	e := &run.Env{Printer: p, Stdin: stdin, At: at}
	root.AddGroup(dataGroups...)
	return at.Add(root, []*cobra.Command{
		initCommand(e), ingest.ImportCommand(e), putCommand(e), getCommand(e),
		deleteCommand(e), exportCommand(e),
		trainCommand(e), searchCommand(e), indexCommand(e),
		updateCommand(e), modelsCommand(e), activateCommand(e), dropCommand(e),
		countCommand(e), facetsCommand(e), statsCommand(e), collectionsCommand(e),
	})
}

// rootCommand returns the tree of verbs. Every run needs a new one, as flags keep their
// values.
func rootCommand(e *run.Env) *cobra.Command { return newRoot(e, &shellOptions{}) }

func newRoot(e *run.Env, o *shellOptions) *cobra.Command {
	root := &cobra.Command{
		Use:   "fddhdb VERB DIR [flags]",
		Short: "A database that finds items of one kind from items of another",
		Long: usage.Prose(`
			fddhdb keeps items that have feature vectors of several kinds (modalities: of
			a picture, of the words with it), learns from the labelled ones short binary
			codes that make the kinds comparable, and finds the items whose codes are
			nearest to that of a vector of any kind.

			A database is a folder, DIR. Several processes can work on it: the first one owns
			it, and the others work through that one. DIR may also be the URL of a database that
			fddhdb serve has open, http://HOST:PORT/NAME; FDDHDB_TOKEN or --token-file has the
			token for it.

			Every verb explains itself: fddhdb help VERB. With --json it prints one JSON
			object, or one a line where there are several; --mode, with every verb, prints
			tables as csv, and JSON as one array. Results go to
			stdout, errors and remarks to stderr. The exit code is 0 when it is done, 1 when
			it failed, 2 when the command line was wrong, and 3 when stored data is corrupt.

			Without a verb, fddhdb DIR opens a shell on a database: the same verbs without
			DIR, with history and completion, and commands that begin with a dot, .help
			among them. -c runs lines of it; what is piped in runs as a script, which stops
			at the first error and names its line.`),
		Example: usage.Example(`
			Make a database from two files of vectors and their labels, learn from it,
			and find pictures for the first text of a file of queries:

			fddhdb import wiki.db --init --vectors image=train_image.npy \
			    --vectors text=train_text.npy --labels train_labels.npy
			fddhdb train wiki.db
			fddhdb search wiki.db --from text --to image --vectors query_text.npy --row 0

			The same search in the shell, and from a script:

			fddhdb wiki.db
			fddhdb wiki.db -c "search --from text --to image --vectors query_text.npy --row 0"
			fddhdb wiki.db < script`),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs, // the first is a folder or a mistyped verb
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return e.BeginOutput(cmd, o.mode)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return noVerb(e, cmd, args, o)
		},
	}
	o.register(e, root)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Stderr)
	root.SetFlagErrorFunc(usage.FlagError)
	help := usage.SetHelp(root, "Flags:", "--mode table, csv, json or jsonl", unknownVerbFor)
	help.ValidArgsFunction = completeVerb
	root.AddGroup(dataGroups...)
	root.AddGroup(
		&cobra.Group{ID: run.GroupServe, Title: "Let others use a database:"},
		&cobra.Group{ID: run.GroupBackup, Title: "Backups:"},
		&cobra.Group{ID: run.GroupOther, Title: "Other:"},
	)
	root.AddCommand(
		initCommand(e), alterCommand(e), ingest.ImportCommand(e), putCommand(e), getCommand(e),
		deleteCommand(e), exportCommand(e),
		trainCommand(e), searchCommand(e), dupsCommand(e), evalCommand(e), encodeCommand(e),
		ingest.EncoderCommand(e), ingest.ReembedCommand(e),
		updateCommand(e), indexCommand(e), reindexCommand(e), modelsCommand(e),
		activateCommand(e), rollbackCommand(e), dropCommand(e),
		scanCommand(e), countCommand(e), facetsCommand(e), statsCommand(e), collectionsCommand(e),
		benchCommand(e), compactCommand(e),
		verifyCommand(e), repairCommand(e), exploreCommand(e), serveCommand(e), healthCommand(e),
		mcpCommand(e), tokenCommand(e),
		backupCommand(e), backupsCommand(e), restoreCommand(e), pruneCommand(e),
		pythonCommand(e), versionCommand(e),
	)
	root.SetHelpCommandGroupID(run.GroupOther)
	addCompletion(root)
	return root
}

// completeVerb completes the name of one verb.
func completeVerb(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return shell.VerbNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
}

// noVerb runs a command line whose first word is no verb: a database opens the shell,
// anything else is a mistake.
func noVerb(e *run.Env, root *cobra.Command, args []string, o *shellOptions) error {
	if o.version {
		return printVersion((&run.Verb{Env: e}))
	}
	if len(args) == 0 {
		if o.given(root) {
			return exit.Usagef("the folder of a database is missing: fddhdb DIR")
		}
		root.SetOut(e.Stderr)
		if err := root.Help(); err != nil {
			return err
		}
		return exit.Usagef("a verb is missing")
	}
	first := args[0]
	if e.Session != nil {
		return exit.Usagef("%q is no verb, and this is a shell already: .quit leaves it", first)
	}
	err := e.OpenSession(root.Context(), first, o.readOnly)
	if err == nil {
		if len(args) == 1 {
			err = shell.New(host{e}, e.Printer, e.Stdin, e.Signals, o.lines,
				o.mode).Start(root.Context())
		} else if slices.Contains(shell.VerbNames(root), args[1]) {
			words := slices.Insert(slices.Clone(args[2:]), 0, "fddhdb", args[1], first)
			for i, w := range words {
				words[i] = shell.QuoteWord(w)
			}
			err = exit.Usagef("the verb comes first: %s", strings.Join(words, " "))
		} else {
			err = exit.Usagef("fddhdb DIR opens the shell, which does not know what to do with %q: -c 'LINE' runs a line of it", args[1])
		}
		return errors.Join(err, e.CloseSession())
	}
	if !errors.Is(err, db.ErrNotDatabase) && !run.IsFile(first) {
		return err
	}
	if strings.EqualFold(first, "shell") {
		return unknownVerbFor(root, first)
	}
	if verb := meant(first, shell.VerbNames(root)); verb != "" {
		return exit.Usagef("%q is neither a verb nor a database: did you mean %s?", first, verb)
	}
	return exit.Usagef("%q is neither a verb nor a database: fddhdb help lists the verbs, of which init creates a database", first)
}

// dataGroups are the groups of verbs about collections and items.
var dataGroups = []*cobra.Group{
	{ID: run.GroupItems, Title: "Items in and out:"},
	{ID: run.GroupLearn, Title: "Learn and find:"},
	{ID: run.GroupSpaces, Title: "Models and their spaces of codes:"},
	{ID: run.GroupLook, Title: "Look at a database, and after it:"},
}

// versionJSON is the --json form of version.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; "" if unknown
	Time     string `json:"time"`     // of that revision
	Modified bool   `json:"modified"` // the source was changed after the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"` // of databases
	Kernel   string `json:"kernel"` // Hamming kernels of this machine
}

func pythonCommand(e *run.Env) *cobra.Command {
	return &cobra.Command{Use: "python", Short: "Print the client for Python", GroupID: run.GroupOther,
		Long: usage.Prose(`
			Python prints a module, fddhdb.py: put it where your program is, or anywhere on the path
			of Python 3.9 or later. It needs the standard library alone, and numpy for arrays.
			fddhdb.open("photos.db") then opens a database as if it were embedded, and
			fddhdb.connect("http://host:7070/photos") one that fddhdb serve has open.
			docs/PYTHON.md explains it. A server hands the file out as ` + python.Path + `.`),
		Example: usage.Example(`
			fddhdb python > fddhdb.py`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Stdout.WriteString(python.Source())
			return err
		}}
}

func versionCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupOther, "version", "Print the version of fddhdb", `
		Version prints what a report of a fault should say: the version of fddhdb, what
		it was built from and with, and the format of databases that it reads.`, `
		fddhdb version --json`)
	return v.Does(func() error { return printVersion(v) })
}

func printVersion(v *run.Verb) error {
	x, source := version(debug.ReadBuildInfo()), ""
	if x.Revision != "" {
		source = fmt.Sprintf("\nsource %s of %s%s", x.Revision, x.Time,
			map[bool]string{true: ", changed since"}[x.Modified])
	}
	return v.Tell(x, "fddhdb %s%s\n%s %s, kernel %s, database format %d", x.Version, source, x.Go, x.Platform,
		x.Kernel, x.Format)
}

func version(info *debug.BuildInfo, ok bool) versionJSON {
	v := versionJSON{
		Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Format: db.Format, Kernel: codec.KernelName(),
	}
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// verbsElsewhere are names of verbs in other tools.
var verbsElsewhere = map[string]string{
	"add": "put", "set": "put", "insert": "put", "upsert": "put", "store": "put", "load": "import",
	"ingest": "import",
	"create": "init", "new": "init", "show": "get", "cat": "get", "fetch": "get", "list": "scan",
	"ls":    "scan",
	"items": "scan", "find": "search", "query": "search", "select": "search", "knn": "search",
	"labels": "facets",
	"remove": "delete", "rm": "delete", "del": "delete", "learn": "train", "fit": "train", "evaluate": "eval",
	"benchmark": "bench", "dump": "export", "save": "export", "check": "verify", "fsck": "verify",
	"fix":     "repair",
	"recover": "repair", "vacuum": "compact", "gc": "compact", "info": "stats", "status": "stats",
	"tables": "collections",
}

// meant returns the name that an unknown word most likely means: a name with a similar
// spelling, or the verb that other tools call so; "" if there is none.
func meant(word string, names []string) string {
	if verb, ok := verbsElsewhere[strings.ToLower(word)]; ok {
		return verb
	}
	return term.Nearest(strings.ToLower(word), names)
}

// unknownVerbFor returns the error for a verb that does not exist.
func unknownVerbFor(root *cobra.Command, word string) error {
	if strings.EqualFold(word, "shell") {
		return exit.Usagef("there is no verb %q: fddhdb DIR opens the shell, and .help explains it there",
			word)
	}
	if verb := meant(word, shell.VerbNames(root)); verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", word, verb)
	}
	return exit.Usagef("there is no verb %q: fddhdb help lists the verbs", word)
}
