package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// A host is the shell.Host of the database of a session.
type host struct{ *run.Env }

var _ shell.Host = host{}

// Root returns the verbs for a line of the shell.
func (h host) Root(mode term.Mode) *cobra.Command {
	var o shellOptions
	root := newRoot(h.Env, &o)
	o.mode = mode
	return root
}

func (h host) Meant(word string, names []string) string { return meant(word, names) }
func (h host) Dir() string                              { return h.Session.Dir }
func (h host) ReadOnly() bool                           { return h.Session.ReadOnly }
func (h host) IsDatabase(path string) bool              { return run.IsDatabase(path) }

// Database returns the database of the session.
func (h host) Database(ctx context.Context) (api.Database, error) {
	p, err := h.Session.Database(ctx, h.Env, false)
	return p.DB, err
}

// Collection returns a collection of the database of the session.
func (h host) Collection(ctx context.Context, name string) (api.Collection, error) {
	d, err := h.Database(ctx)
	if err != nil {
		return nil, err
	}
	return run.FindCollection(ctx, d, name)
}

// PrintSchemas prints lines of the shell that create collections, or JSON.
func (h host) PrintSchemas(ctx context.Context, names []string, json bool) error {
	for _, name := range names {
		c, err := h.Collection(ctx, name)
		if err != nil {
			return err
		}
		schema, err := c.Schema(ctx)
		if err != nil {
			return err
		}
		if json {
			form := forms.NewSchema(name, schema)
			form.Encoders = schema.Encoders
			if err := h.PrintJSON(form); err != nil {
				return err
			}
			continue
		}
		h.Printf("%s\n", initLine(name, schema))
		encoders := schema.Encoders
		for i := range encoders {
			trusted, err := encoder.Trusts(h.Dir(), encoders[i].Command)
			if err != nil {
				return err
			}
			comment := ""
			if !trusted { // who runs the line trusts the encoder
				comment = "# not trusted here: "
			}
			h.Printf("%s%s\n", comment, encoderLine(name, &encoders[i]))
		}
	}
	return nil
}

// encoderLine returns the line of the shell that stores an encoder.
func encoderLine(name string, x *db.Encoder) string {
	words := []string{"encoder"}
	if name != "main" {
		words = append(words, "--collection", name)
	}
	if x.Input != db.InputText {
		words = append(words, "--input", string(x.Input))
	}
	set := x.Modality + "=" + run.Quoted(x.Command)
	return term.Plain(run.Quoted(append(words, "--set", set)))
}

// initLine returns the line of the shell that creates a collection.
func initLine(name string, schema db.Schema) string {
	words := []string{"init"}
	if name != "main" {
		words = append(words, "--collection", name)
	}
	for _, m := range schema.Modalities {
		value := fmt.Sprintf("%s:%d", m.Name, m.Dim)
		if m.Sparse {
			value += ":sparse"
		}
		words = append(words, "--modality", value)
	}
	if schema.Bits > 0 {
		words = append(words, "--codes", fmt.Sprint(schema.Bits))
	}
	if schema.Hash != "" {
		words = append(words, "--hash", schema.Hash)
	}
	for _, f := range schema.Fields {
		value := fmt.Sprintf("%s:%s", f.Name, f.Type)
		if f.Indexed {
			value += ":index"
		}
		if f.Words {
			value += ":words"
		}
		words = append(words, "--field", value)
	}
	return term.Plain(run.Quoted(words))
}

// shellOptions are the flags of the command line without a verb. mode belongs to all
// verbs.
type shellOptions struct {
	lines    []string
	readOnly bool
	version  bool
	mode     term.Mode
}

func (o *shellOptions) register(e *run.Env, root *cobra.Command) {
	o.mode = term.ModeTable
	root.Flags().StringArrayVarP(&o.lines, "command", "c", nil,
		"run the `LINE` in the shell and leave; repeat it for more")
	root.Flags().BoolVar(&o.readOnly, "readonly", false, "the shell only looks at the database")
	root.Flags().BoolVar(&o.version, "version", false, "print the version, as the verb does")
	root.PersistentFlags().BoolVar(&e.NoAttach, "no-attach", e.NoAttach,
		"fail if another process has the database open, instead of working through it")
	root.PersistentFlags().StringVar(&e.TokenFile, "token-file", e.TokenFile,
		"the token for a server, in a `FILE` (default: FDDHDB_TOKEN)")
	root.PersistentFlags().Var(&o.mode, "mode",
		"print results as table, csv, json or jsonl; with any verb, where --json overrules it")
}

func (o *shellOptions) given(root *cobra.Command) bool {
	return root.Flags().Changed("command") || o.readOnly
}

// plainLine matches a command line in which bash and zsh evaluate quotes, ~ and
// variables, and nothing else: no $(command), no second command, no file to write to.
const (
	plainLine = `^([[:alnum:][:blank:]_./:=@%+,~-]|\\.|'[^']*'|"([^"$\` + "`" + `]|\\.|` +
		plainVariable + `)*"|` + plainVariable + `)*$`
	plainVariable = `\$[[:alpha:]_][[:alnum:]_]*|\$\{[[:alpha:]_][[:alnum:]_]*\}`
)

// evaluations are the lines in which cobra's scripts evaluate what has been typed, and
// the lines in their place, so that Tab runs no command of the line.
var evaluations = map[string]struct{ theirs, ours string }{
	"bash": {`    out=$(eval "${requestComp}" 2>/dev/null)`, `    local plain=` + shellQuoted(plainLine) + `
    [[ ${requestComp} =~ ${plain} ]] || return
    out=$(eval "${requestComp}" 2>/dev/null)`},
	"zsh": {`    out=$(eval ${requestComp} 2>/dev/null)`, `    local plain=` + shellQuoted(plainLine) + `
    [[ ${requestComp} =~ ${plain} ]] || return 1
    flagPrefix=${flagPrefix:+-P ${(q)flagPrefix#-P }} # a part of a word, which is evaluated below
    out=$(eval ${requestComp} 2>/dev/null)`},
	"fish": {`    set -l results (eval $requestComp 2> /dev/null)`, `    set -l typed (commandline -ct)
    set args (string replace -r '^~/' "$HOME/" -- $args)
    set -l results ($args[1] ` + cobra.ShellCompRequestCmd + ` $args[2..-1] "$typed" 2> /dev/null)`},
	"powershell": {`    Invoke-Expression -OutVariable out "$RequestComp" 2>&1 | Out-Null`, `    if ($RequestComp -match '[$;&|<>(){}]') { return }
    Invoke-Expression -OutVariable out "$RequestComp" 2>&1 | Out-Null`},
}

// shellQuoted quotes a text for bash and zsh.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// completionScript returns the script of a shell that completes the verbs of root.
func completionScript(root *cobra.Command, shell string) (string, error) {
	var script strings.Builder
	var err error
	switch shell {
	case "bash":
		err = root.GenBashCompletionV2(&script, true)
	case "zsh":
		err = root.GenZshCompletion(&script)
	case "fish":
		err = root.GenFishCompletion(&script, true)
	case "powershell":
		err = root.GenPowerShellCompletionWithDesc(&script)
	}
	evaluation := evaluations[shell]
	if err == nil && strings.Count(script.String(), evaluation.theirs) != 1 {
		err = fmt.Errorf("the completion of %s would run commands: its script has changed", shell)
	}
	return strings.Replace(script.String(), evaluation.theirs, evaluation.ours, 1), err
}

// addCompletion adds cobra's verb, with our scripts.
func addCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID(run.GroupOther)
	root.CompletionOptions.DisableNoDescFlag = true // $FDDHDB_COMPLETION_DESCRIPTIONS does it
	root.InitDefaultCompletionCmd()
	verb, _, err := root.Find([]string{"completion"})
	if err != nil || verb == root {
		return
	}
	verb.Use, verb.DisableFlagsInUseLine = "completion SHELL", true
	verb.Short = "Print what makes a shell complete"
	verb.Long = usage.Prose(`
		Completion prints a script for your shell, bash, zsh, fish or powershell. The
		shell then completes verbs, flags, their values and files. The help of each says
		what to do with it: fddhdb help completion bash.`)
	verb.Example = usage.Example(`
		source <(fddhdb completion bash)`)
	var shells []string
	for _, c := range verb.Commands() {
		shells = append(shells, c.Name())
		c.RunE = func(c *cobra.Command, _ []string) error {
			script, err := completionScript(c.Root(), c.Name())
			if err == nil {
				_, err = io.WriteString(c.OutOrStdout(), script)
			}
			return err
		}
	}
	verb.Args = cobra.ArbitraryArgs
	verb.RunE = func(_ *cobra.Command, args []string) error {
		return exit.Usagef("completion needs the name of a shell, %s, and not %q", strings.Join(shells, ", "),
			strings.Join(args, " "))
	}
}
