package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// A dotCommand is a command of the shell itself.
type dotCommand struct {
	Name  string // with the dot
	Args  string // as in help; arguments in brackets are optional
	most  int    // largest number of arguments
	Short string
	run   func(s *Shell, ctx context.Context, args []string) error
	words func(s *Shell) []string // completions of the first argument; nil: see file
	file  bool                    // the first argument is a file
}

// least returns the least number of arguments.
func (d *dotCommand) least() int {
	if d.Args == "" || strings.HasPrefix(d.Args, "[") {
		return 0
	}
	return 1
}

var onOff = []string{"on", "off"}

// DotCommands returns the commands, in the order of help.
func DotCommands() []dotCommand {
	return []dotCommand{
		{Name: ".echo", Args: "on|off", most: 1, Short: "print each line before it runs",
			run: setOnOff(func(s *Shell) *bool { return &s.echo }), words: oneOf(onOff...)},
		{Name: ".exit", Short: "leave the shell", run: quit},
		{Name: ".help", Args: "[NAME]", most: 1, Short: "explain a verb or a command; list them",
			run: dotHelpOn, words: (*Shell).names},
		{Name: ".mode", Args: "[MODE]", most: 1, Short: "print results as " + strings.Join(term.Modes, ", "),
			run: setMode, words: oneOf(term.Modes...)},
		{Name: ".output", Args: "[FILE]", most: 1,
			Short: "write the results of all lines to a file, or no longer", run: setOutput, file: true},
		{Name: ".quit", Short: "leave the shell", run: quit},
		{Name: ".read", Args: "FILE", most: 1, Short: "run the lines of a file, up to the first error",
			run: readScript, file: true},
		{Name: ".schema", Args: "[COLLECTION]", most: 1,
			Short: "print what would create the collections again",
			run:   printSchemas, words: (*Shell).collections},
		{Name: ".show", Short: "print the settings", run: showSettings},
		{Name: ".timer", Args: "on|off", most: 1, Short: "print how long each verb takes",
			run: setOnOff(func(s *Shell) *bool { return &s.timer }), words: oneOf(onOff...)},
		{Name: ".use", Args: "[COLLECTION]", most: 1,
			Short: "make a collection the default of --collection, or main again",
			run:   useCollection, words: (*Shell).collections},
	}
}

func dotNames() []string {
	var names []string
	for _, d := range DotCommands() {
		names = append(names, d.Name)
	}
	return names
}

// runDot runs a line that begins with a dot.
func (s *Shell) runDot(ctx context.Context, args []string) error {
	all := DotCommands()
	i := slices.IndexFunc(all, func(d dotCommand) bool { return d.Name == args[0] })
	if i < 0 {
		if name := term.Nearest(args[0], dotNames()); name != "" {
			return exit.Usagef("there is no command %q: did you mean %s?", args[0], name)
		}
		return exit.Usagef("there is no command %q: .help lists them", args[0])
	}
	d, args := &all[i], args[1:]
	usage := strings.TrimSpace(d.Name + " " + d.Args)
	switch {
	case len(args) < d.least():
		return exit.Usagef("%s needs an argument: %s", d.Name, usage)
	case len(args) > d.most:
		return exit.Usagef("%s does not know what to do with %q: %s", d.Name, args[d.most], usage)
	case len(args) > 0 && args[0] == "" && d.least() > 0:
		return exit.Usagef("%s needs an argument that is not empty: %s", d.Name, usage)
	}
	return d.run(s, ctx, args)
}

// Help is the text of help about the shell.
const Help = `A line is a verb with its flags, or a command that begins with a dot. Verbs work
on the database that is open and are those of the command line without fddhdb
and DIR; verify without an argument verifies it, and a line that begins with
fddhdb is a command line as it is.

Words are quoted as in other shells: '...', "..." and \; # begins a comment. A
line with an open quote, or a backslash at its end, goes on. Tab completes.
Ctrl-C drops the line, or stops the verb that runs; Ctrl-D leaves. A verb that
does not stop within seconds ends with the shell, at once after another Ctrl-C.`

// dotHelp lists the commands.
func dotHelp() string {
	var b strings.Builder
	b.WriteString("Commands:")
	for _, d := range DotCommands() {
		fmt.Fprintf(&b, "\n  %-24s %s", strings.TrimSpace(d.Name+" "+d.Args), d.Short)
	}
	return b.String()
}

func dotHelpOn(s *Shell, ctx context.Context, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], ".") {
		for _, d := range DotCommands() {
			if d.Name == args[0] {
				return s.print(func() {
					fmt.Fprintf(s.out.Stdout, "%s\n  %s\n", strings.TrimSpace(d.Name+" "+d.Args), d.Short)
				})
			}
		}
		if name := term.Nearest(args[0], dotNames()); name != "" {
			return exit.Usagef("there is no command %q: did you mean %s?", args[0], name)
		}
		return exit.Usagef("there is no command %q: .help lists them", args[0])
	}
	return s.withOutput(ctx, func(ctx context.Context) error {
		return s.host.Execute(ctx, s.root(), append([]string{"help"}, args...))
	})
}

func oneOf(words ...string) func(*Shell) []string {
	return func(*Shell) []string { return words }
}

func setOnOff(of func(*Shell) *bool) func(*Shell, context.Context, []string) error {
	return func(s *Shell, _ context.Context, args []string) error {
		if !slices.Contains(onOff, args[0]) {
			return exit.Usagef("%q: on or off is expected", args[0])
		}
		*of(s) = args[0] == "on"
		return nil
	}
}

func quit(s *Shell, _ context.Context, _ []string) error {
	s.quit = true
	return nil
}

func setMode(s *Shell, _ context.Context, args []string) error {
	if len(args) == 0 {
		return s.print(func() { fmt.Fprintln(s.out.Stdout, s.mode) })
	}
	if err := s.mode.Set(args[0]); err != nil {
		return exit.Usagef(".mode %s: %w", args[0], err)
	}
	return nil
}

func setOutput(s *Shell, _ context.Context, args []string) error {
	return s.redirect(strings.Join(args, ""))
}

// maxNested bounds the nesting of .read: files that read each other would never end.
const maxNested = 20

func readScript(s *Shell, ctx context.Context, args []string) error {
	path := args[0]
	if len(s.files) == maxNested {
		return exit.Usagef("%s: .read within .read, %d deep: do the files read each other?", path, maxNested)
	}
	f, err := os.Open(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", path, at.Err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	s.files = append(s.files, path)
	defer func() { s.files = s.files[:len(s.files)-1] }()
	return s.runScript(ctx, path, f)
}

func useCollection(s *Shell, ctx context.Context, args []string) error {
	name := "main"
	if len(args) > 0 {
		name = args[0]
		if _, err := s.host.Collection(ctx, name); err != nil {
			return err
		}
	}
	s.collection = name
	return nil
}

func showSettings(s *Shell, _ context.Context, _ []string) error {
	output := "standard output"
	if s.output != nil {
		output = s.output.path
	}
	name := map[bool]string{true: "on", false: "off"}
	database := s.host.Dir()
	if s.host.ReadOnly() {
		database += ", only to look at"
	}
	return s.print(func() {
		for _, p := range [][2]string{
			{"database", database}, {"collection", s.collection}, {"mode", string(s.mode)},
			{"output", output},
			{"timer", name[s.timer]}, {"echo", name[s.echo]},
			{"history", term.OrDash(s.historyPath())},
		} {
			fmt.Fprintf(s.out.Stdout, "%-10s  %s\n", p[0], p[1])
		}
	})
}

// printSchemas prints lines that create the collections, or with JSON their schemas.
func printSchemas(s *Shell, ctx context.Context, args []string) error {
	d, err := s.host.Database(ctx)
	if err != nil {
		return err
	}
	names, err := d.Collections(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		names = args
	}
	cmd := &cobra.Command{} // prints like a verb
	json := cmd.Flags().Bool("json", false, "")
	term.PrintsObjects(cmd)
	return s.withOutput(ctx, func(context.Context) error {
		return s.out.Scope(func() error {
			if err := s.out.BeginOutput(cmd, s.mode); err != nil {
				return err
			}
			return s.host.PrintSchemas(ctx, names, *json)
		})
	})
}
