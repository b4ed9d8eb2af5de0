package command

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

// A verb is one verb of the command, such as search. Its constructor declares the flags. When it runs, it has
// its arguments, the open database, and the collection too. A verb runs once.
type verb struct {
	*env
	cmd *cobra.Command
	f   *pflag.FlagSet

	// Flags that many verbs have.
	collection string
	space      db.Space
	where      flags.Where
	json       bool
	readsSpace bool // the collection is opened in the space
	// Without --collection and --space the verb is about the whole database.
	anyCollection bool

	// Of the run.
	ctx   context.Context
	args  []string
	dir   string         // the first argument
	place                // that look or change has opened
	c     api.Collection // nil for verbs without --collection

	schema db.Schema // of the collection as it was opened
}

// verb declares a verb with --json. use has its name, then its arguments: DIR, URL, KEY, KEY...
func (e *env) verb(group, use, short, long, examples string) *verb {
	v := &verb{env: e, cmd: &cobra.Command{Use: use, Short: short, GroupID: group,
		Long: usage.Prose(long), Example: usage.Example(examples), Args: checkArgs(use)}}
	v.f = v.cmd.Flags()
	v.f.BoolVar(&v.json, "json", false, "print JSON")
	return v
}

// onCollection adds --collection.
func (v *verb) onCollection() *verb {
	v.f.StringVar(&v.collection, "collection", "main", "the collection `NAME` to work on")
	return v
}

// onAnyCollection is onCollection for a verb to which the whole database is the default.
func (v *verb) onAnyCollection(usage string) {
	v.onCollection()
	flag := v.f.Lookup("collection")
	flag.Usage, flag.DefValue = usage, ""
	v.anyCollection = true
}

// inSpace adds --space to a verb that reads codes: it sees the collection in that space.
func (v *verb) inSpace() *verb {
	v.readsSpace = true
	return v.ofSpace("look at the codes of space `N` (default: the active one)")
}

// ofSpace adds --space to a verb about spaces.
func (v *verb) ofSpace(usage string) *verb {
	v.f.Uint32Var((*uint32)(&v.space), "space", 0, usage)
	return v
}

func (v *verb) filtered() *verb {
	what := "only items that match, see fddhdb help scan"
	if v.cmd.Name() == "scan" {
		what = "only items that match"
	}
	v.f.Var(&v.where, "where", what)
	return v
}

// printsLines marks a verb that prints an object a line with --json. Others print one object.
func (v *verb) printsLines() *verb {
	term.PrintsObjects(v.cmd)
	return v
}

// count adds a flag of a whole number with a least value.
func (v *verb) count(n *int, name string, def, least int, usage string) {
	*n = def
	v.f.VarP(&count{n, least}, name, map[bool]string{true: name}[len(name) == 1], usage)
}

type count struct {
	n     *int
	least int
}

func (c *count) String() string { return strconv.Itoa(*c.n) }
func (c *count) Type() string   { return "count" }

func (c *count) Set(s string) (err error) {
	if *c.n, err = strconv.Atoi(s); err != nil || *c.n < c.least {
		return fmt.Errorf("a whole number of %d or more is expected", c.least)
	}
	return nil
}

func (v *verb) given(flag string) bool { return v.f.Changed(flag) }

// does sets the function that runs the verb. That function opens the database itself, if it needs one.
func (v *verb) does(run func() error) *cobra.Command {
	v.cmd.RunE = func(cmd *cobra.Command, args []string) error {
		v.ctx, v.args = cmd.Context(), args
		if len(args) > 0 {
			v.dir = args[0]
		}
		return v.worded(run())
	}
	return v.cmd
}

// looks completes a verb that reads the database, changes one that writes to it.
func (v *verb) looks(run func() error) *cobra.Command {
	return v.does(func() error { return v.look(run) })
}

func (v *verb) changes(run func() error) *cobra.Command {
	return v.does(func() error { return v.change(run) })
}

// look opens the database to read it, and the collection if there is a flag for it, and runs f. Several
// processes may look at a time, also without write permission.
func (v *verb) look(f func() error) error {
	return v.openAnd(v.ctx, v.dir, &db.Options{ReadOnly: true}, v.on(f))
}

// share is look for verbs that take long: it owns the folder where it may, so that other processes work
// through this one meanwhile.
func (v *verb) share(f func() error) error {
	if v.session.has(v.dir) {
		return v.look(f)
	}
	// Beside others that only read, this one only reads, too.
	wait := v.wait
	v.wait = briefly
	err := v.openAnd(v.ctx, v.dir, &db.Options{MustExist: true}, v.on(f))
	v.wait = wait
	if unwritable(err) || errors.Is(err, db.ErrLocked) {
		err = v.look(f)
	}
	return err
}

// briefly is how long a verb that can do without owning the folder waits for it.
const briefly = 100 * time.Millisecond

// change is look for verbs that write.
func (v *verb) change(f func() error) error {
	return v.openAnd(v.ctx, v.dir, &db.Options{MustExist: true}, v.on(f))
}

func (v *verb) on(f func() error) func(place) error {
	return func(p place) (err error) {
		v.place = p
		if v.collection == "" || v.anyCollection && !v.given("collection") && !v.given("space") {
			return f()
		}
		if v.c, err = collection(v.ctx, v.d, v.collection); err == nil {
			v.schema, err = v.c.Schema(v.ctx)
		}
		if err != nil {
			return err
		}
		if v.given("space") {
			if v.space == 0 {
				return exit.Usagef("--space 0: spaces are numbered from 1; without the flag it is the active one")
			}
			in, err := v.c.InSpace(v.ctx, v.space, 0)
			switch { // a space that is being built has no codes to read yet, but is there
			case errors.Is(err, db.ErrNotFound):
				return exit.Usagef("--space %d: %s", v.space, exit.Reason(err.Error()))
			case err == nil && v.readsSpace:
				v.c = in
			case err != nil && (v.readsSpace || !errors.Is(err, db.ErrBusy)):
				return err
			}
		}
		v.warnOfLabels()
		return f()
	}
}

// modality returns the modality with a name, which a flag gives.
func (v *verb) modality(flag, name string) (db.Modality, error) {
	return source.FindModality(v.c.Name(), v.schema, flag, name)
}

// trained returns the figures of the collection, which has to have codes.
func (v *verb) trained() (*db.CollectionStats, error) {
	stats, err := v.c.Stats(v.ctx)
	if err == nil && !stats.Trained {
		err = untrained(v.c)
	}
	return stats, err
}

// show prints the result of a verb: JSON if the user wants that, else by a function for people.
func (v *verb) show(form any, print func()) error {
	if v.json {
		return v.PrintJSON(form)
	}
	print()
	return nil
}

// tell prints the result of a verb: JSON if the user wants that, else a sentence.
func (v *verb) tell(form any, format string, args ...any) error {
	if v.json {
		return v.PrintJSON(form)
	}
	v.Printf(format+"\n", args...)
	return nil
}

// list prints a result of several parts: JSON, an object a line, else by a function for people.
func list[T any](v *verb, all []T, print func()) error {
	if !v.json {
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
func (v *verb) warnOfLabels() {
	asked := shell.LabelsIn(v.where.Expr)
	if len(asked) == 0 {
		return
	}
	there, err := v.c.Labels(v.ctx)
	if err != nil {
		return // the verb meets the error, too
	}
	for _, label := range asked {
		if !slices.Contains(there, label) {
			v.Warnf("warning: --where: label '%s': no item has it%s", term.Plain(label), meaning(label, there))
		}
	}
}

// meaning returns "; did you mean NAME?" for the name that is most like a mistyped word, or "" if none is.
func meaning(word string, names []string) string {
	if near := term.Nearest(word, names); near != "" {
		return "; did you mean " + term.Plain(near) + "?"
	}
	return ""
}

// worded turns an error about an expression into one about --where.
func (v *verb) worded(err error) error {
	var bad *db.WhereError
	switch {
	case !errors.As(err, &bad):
		return err
	case strings.HasPrefix(bad.Reason, "placeholder "):
		return exit.Usagef("--where: column %d: ? is for programs that embed a database: write the value, text in single quotes", bad.Column)
	}
	return exit.Usagef("--where: column %d: %s", bad.Column, bad.Reason)
}

// tellBeside is tell for a verb whose file may be standard output: then the sentence goes to stderr.
func (v *verb) tellBeside(stdout bool, form any, format string, args ...any) error {
	if stdout {
		v.Notef(format, args...)
		return nil
	}
	return v.tell(form, format, args...)
}

// checkStdout refuses JSON where standard output is the file.
func (v *verb) checkStdout(stdout bool) error {
	if stdout && v.json {
		return exit.Usagef("-: standard output cannot be the file and have the JSON of --json or --mode, too: leave one of them out")
	}
	return nil
}
