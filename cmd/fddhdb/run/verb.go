package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// A Verb is one verb of the command, such as search. Its constructor declares the flags. When it runs, it has
// its arguments, the open database, and the collection too. A verb runs once.
type Verb struct {
	*Env
	Cmd   *cobra.Command
	Flags *pflag.FlagSet

	// Flags that many verbs have.
	CollectionName string
	Space          db.Space
	Filter         flags.Where
	JSON           bool
	readsSpace     bool // the collection is opened in the space
	// Without --collection and --space the verb is about the whole database.
	anyCollection bool

	// Of the run.
	Ctx        context.Context
	Args       []string
	Dir        string         // the first argument
	Place                     // that Look or Change has opened
	Collection api.Collection // nil for verbs without --collection

	Schema db.Schema // of the collection as it was opened
}

// NewVerb declares a verb with --json. use has its name, then its arguments: DIR, URL, KEY, KEY...
func (e *Env) NewVerb(group, use, short, long, examples string) *Verb {
	v := &Verb{Env: e, Cmd: &cobra.Command{Use: use, Short: short, GroupID: group,
		Long: usage.Prose(long), Example: usage.Example(examples), Args: checkArgs(use)}}
	v.Flags = v.Cmd.Flags()
	v.Flags.BoolVar(&v.JSON, "json", false, "print JSON")
	return v
}

// OnCollection adds --collection.
func (v *Verb) OnCollection() *Verb {
	v.Flags.StringVar(&v.CollectionName, "collection", "main", "the collection `NAME` to work on")
	return v
}

// OnAnyCollection is OnCollection for a verb to which the whole database is the default.
func (v *Verb) OnAnyCollection(usage string) {
	v.OnCollection()
	flag := v.Flags.Lookup("collection")
	flag.Usage, flag.DefValue = usage, ""
	v.anyCollection = true
}

// InSpace adds --space to a verb that reads codes: it sees the collection in that space.
func (v *Verb) InSpace() *Verb {
	v.readsSpace = true
	return v.OfSpace("look at the codes of space `N` (default: the active one)")
}

// OfSpace adds --space to a verb about spaces.
func (v *Verb) OfSpace(usage string) *Verb {
	v.Flags.Uint32Var((*uint32)(&v.Space), "space", 0, usage)
	return v
}

// Filtered adds --where.
func (v *Verb) Filtered() *Verb {
	what := "only items that match, see fddhdb help scan"
	if v.Cmd.Name() == "scan" {
		what = "only items that match"
	}
	v.Flags.Var(&v.Filter, "where", what)
	return v
}

// PrintsLines marks a verb that prints an object a line with --json. Others print one object.
func (v *Verb) PrintsLines() *Verb {
	term.PrintsObjects(v.Cmd)
	return v
}

// Count adds a flag of a whole number with a least value.
func (v *Verb) Count(n *int, name string, def, least int, usage string) {
	*n = def
	v.Flags.VarP(&Count{n, least}, name, map[bool]string{true: name}[len(name) == 1], usage)
}

// A Count is the value of a flag of a whole number.
type Count struct {
	N     *int
	Least int
}

func (c *Count) String() string { return strconv.Itoa(*c.N) }
func (c *Count) Type() string   { return "count" }

func (c *Count) Set(s string) (err error) {
	if *c.N, err = strconv.Atoi(s); err != nil || *c.N < c.Least {
		return fmt.Errorf("a whole number of %d or more is expected", c.Least)
	}
	return nil
}

// Given reports whether the command line has a flag.
func (v *Verb) Given(flag string) bool { return v.Flags.Changed(flag) }

// Does sets the function that runs the verb. That function opens the database itself, if it needs one.
func (v *Verb) Does(run func() error) *cobra.Command {
	v.Cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v.Ctx, v.Args = cmd.Context(), args
		if len(args) > 0 {
			v.Dir = args[0]
		}
		return v.Worded(run())
	}
	return v.Cmd
}

// Looks completes a verb that reads the database.
func (v *Verb) Looks(run func() error) *cobra.Command {
	return v.Does(func() error { return v.Look(run) })
}

// Changes completes a verb that writes to the database.
func (v *Verb) Changes(run func() error) *cobra.Command {
	return v.Does(func() error { return v.Change(run) })
}

// Look opens the database to read it, and the collection if there is a flag for it, and runs f. Several
// processes may look at a time, also without write permission.
func (v *Verb) Look(f func() error) error {
	return v.OpenAnd(v.Ctx, v.Dir, &db.Options{ReadOnly: true}, v.on(f))
}

// Share is Look for verbs that take long: it owns the folder where it may, so that other processes work
// through this one meanwhile.
func (v *Verb) Share(f func() error) error {
	if v.Session.Has(v.Dir) {
		return v.Look(f)
	}
	// Beside others that only read, this one only reads, too.
	wait := v.Wait
	v.Wait = Briefly
	err := v.OpenAnd(v.Ctx, v.Dir, &db.Options{MustExist: true}, v.on(f))
	v.Wait = wait
	if Unwritable(err) || errors.Is(err, db.ErrLocked) {
		err = v.Look(f)
	}
	return err
}

// Briefly is how long a verb that can do without owning the folder waits for it.
const Briefly = 100 * time.Millisecond

// Change is Look for verbs that write.
func (v *Verb) Change(f func() error) error {
	return v.OpenAnd(v.Ctx, v.Dir, &db.Options{MustExist: true}, v.on(f))
}

func (v *Verb) on(f func() error) func(Place) error {
	return func(p Place) (err error) {
		v.Place = p
		if v.CollectionName == "" || v.anyCollection && !v.Given("collection") && !v.Given("space") {
			return f()
		}
		if v.Collection, err = FindCollection(v.Ctx, v.DB, v.CollectionName); err == nil {
			v.Schema, err = v.Collection.Schema(v.Ctx)
		}
		if err != nil {
			return err
		}
		if v.Given("space") {
			if v.Space == 0 {
				return exit.Usagef("--space 0: spaces are numbered from 1; without the flag it is the active one")
			}
			in, err := v.Collection.InSpace(v.Ctx, v.Space, 0)
			switch { // a space that is being built has no codes to read yet, but is there
			case errors.Is(err, db.ErrNotFound):
				return exit.Usagef("--space %d: %s", v.Space, exit.Reason(err.Error()))
			case err == nil && v.readsSpace:
				v.Collection = in
			case err != nil && (v.readsSpace || !errors.Is(err, db.ErrBusy)):
				return err
			}
		}
		v.warnOfLabels()
		return f()
	}
}

// FindModality returns the modality with a name, which a flag gives.
func (v *Verb) FindModality(flag, name string) (db.Modality, error) {
	return source.FindModality(v.Collection.Name(), v.Schema, flag, name)
}

// Trained returns the figures of the collection, which has to have codes.
func (v *Verb) Trained() (*db.CollectionStats, error) {
	stats, err := v.Collection.Stats(v.Ctx)
	if err == nil && !stats.Trained {
		err = Untrained(v.Collection)
	}
	return stats, err
}

// Show prints the result of a verb: JSON if the user wants that, else by a function for people.
func (v *Verb) Show(form any, print func()) error {
	if v.JSON {
		return v.PrintJSON(form)
	}
	print()
	return nil
}

// Tell prints the result of a verb: JSON if the user wants that, else a sentence.
func (v *Verb) Tell(form any, format string, args ...any) error {
	if v.JSON {
		return v.PrintJSON(form)
	}
	v.Printf(format+"\n", args...)
	return nil
}

// List prints a result of several parts: JSON, an object a line, else by a function for people.
func List[T any](v *Verb, all []T, print func()) error {
	if !v.JSON {
		print()
		return nil
	}
	for _, x := range all {
		if err := v.PrintJSON(x); err != nil {
			return err
		}
	}
	return nil
}

// checkArgs returns what checks the arguments of a verb that is used so.
func checkArgs(use string) cobra.PositionalArgs {
	places := strings.Fields(use)[1:]
	return func(cmd *cobra.Command, args []string) error {
		n := 0
		for ; n < len(places) && !strings.ContainsAny(places[n][:1], "-(["); n++ {
			what := map[string]string{"URL": "the URL of the backups", "KEY": "the key of an item",
				"KEY...": "the key of an item", "FILE": "the file of the tokens"}[places[n]]
			if len(args) <= n || args[n] == "" && what != "the key of an item" {
				return exit.Usagef("%s needs %s: fddhdb %s", cmd.Name(),
					cmp.Or(what, "the folder of a database"), cmd.Use)
			}
		}
		if len(args) > n && !strings.Contains(use, "KEY...") && !strings.Contains(use, "DIR...") &&
			!strings.Contains(use, "[WORDS") && !strings.Contains(use, "(FILE") {
			return exit.Usagef("%s does not know what to do with %q: fddhdb %s", cmd.Name(), args[n], cmd.Use)
		}
		for _, key := range args[min(1, len(args)):] {
			if strings.Contains(use, "KEY") && (key == "" || len(key) > db.MaxKeyBytes) {
				return exit.Usagef("the key %.40q: keys have 1 to %d bytes", key, db.MaxKeyBytes)
			}
		}
		return nil
	}
}

// warnOfLabels warns of labels in --where that no item has: most likely they are mistyped, and the answer is
// empty.
func (v *Verb) warnOfLabels() {
	asked := shell.LabelsIn(v.Filter.Expr)
	if len(asked) == 0 {
		return
	}
	there, err := v.Collection.Labels(v.Ctx)
	if err != nil {
		return // the verb meets the error, too
	}
	for _, label := range asked {
		if !slices.Contains(there, label) {
			v.Warnf("warning: --where: label '%s': no item has it%s", term.Plain(label), Meaning(label, there))
		}
	}
}

// Meaning returns "; did you mean NAME?" for the name that is most like a mistyped word, or "" if none is.
func Meaning(word string, names []string) string {
	if near := term.Nearest(word, names); near != "" {
		return "; did you mean " + term.Plain(near) + "?"
	}
	return ""
}

// Worded turns an error about an expression into one about --where.
func (v *Verb) Worded(err error) error {
	var bad *db.WhereError
	switch {
	case !errors.As(err, &bad):
		return err
	case strings.HasPrefix(bad.Reason, "placeholder "):
		return exit.Usagef("--where: column %d: ? is for programs that embed a database: write the value, text in single quotes", bad.Column)
	}
	return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
}

// TellBeside is Tell for a verb whose file may be standard output: then the sentence goes to stderr.
func (v *Verb) TellBeside(stdout bool, form any, format string, args ...any) error {
	if stdout {
		v.Notef(format, args...)
		return nil
	}
	return v.Tell(form, format, args...)
}

// CheckStdout refuses JSON where standard output is the file.
func (v *Verb) CheckStdout(stdout bool) error {
	if stdout && v.JSON {
		return exit.Usagef("-: standard output cannot be the file and have the JSON of --json or --mode, too: leave one of them out")
	}
	return nil
}

// AloneOf refuses the flags of a verb that are given beside --model and are not about it.
func (v *Verb) AloneOf(about ...string) error {
	var others []string
	v.Flags.Visit(func(f *pflag.Flag) {
		if v.Cmd.InheritedFlags().Lookup(f.Name) == nil &&
			!slices.Contains(append(about, "model", "collection", "json"), f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) > 0 {
		return exit.Usagef("--model is about a model and not about items: %s does not go with it",
			strings.Join(others, ", "))
	}
	return nil
}

// SpaceHint returns whether searches use a new space, and if not how to make them.
func (v *Verb) SpaceHint(space db.Space, active bool) string {
	if active {
		return "it is active: searches use it"
	}
	of := ""
	if v.CollectionName != "main" {
		of = " --collection " + v.CollectionName
	}
	by := "search and eval"
	if v.At != nil {
		by = "search"
	}
	return v.At.Words(fmt.Sprintf("it stands by: compare it by %s with --space %d,\nand make it the active one by fddhdb activate %s%s --space %[2]d", by, space, v.Dir, of))
}

// Quoted returns words as a line of the shell.
func Quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = shell.QuoteWord(w)
	}
	return strings.Join(all, " ")
}

// VerbLine returns the beginning of the command line of a verb that works on a collection.
func VerbLine(verb, dir, collection string) string {
	line := "fddhdb " + verb + " " + dir
	if collection != "main" {
		line += " --collection " + collection
	}
	return line
}
