package command

import (
	"cmp"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db/api"
)

// An Elsewhere is the database of another program, which is in no folder, such as a cluster.
type Elsewhere struct {
	Program string // name of the program, which stands in texts in place of fddhdb DIR
	Place   string // what texts call the database, such as "cluster main"; set it before a verb runs

	// Open opens the database for a verb, which closes it.
	Open func(ctx context.Context) (api.Database, error)

	verbs []string // that AddVerbs has added
}

// AddVerbs adds to a program the verbs about collections and items, and their groups. Each is a verb of
// fddhdb without DIR. It leaves out verbs that need a list of the items or a folder. It returns the verbs by
// name. An error of a verb may have a command line of fddhdb in its text: see Words.
func (at *Elsewhere) AddVerbs(root *cobra.Command, p *term.Printer,
	stdin io.Reader) map[string]*cobra.Command {
	e := &env{Printer: p, stdin: stdin, at: at}
	root.AddGroup(dataGroups...)
	all := []*cobra.Command{
		initCommand(e), importCommand(e), putCommand(e), getCommand(e), deleteCommand(e), exportCommand(e),
		trainCommand(e), searchCommand(e), indexCommand(e),
		updateCommand(e), modelsCommand(e), activateCommand(e), dropCommand(e),
		countCommand(e), facetsCommand(e), statsCommand(e), collectionsCommand(e),
	}
	verbs := map[string]*cobra.Command{}
	for _, c := range all {
		verbs[c.Name()] = c
		at.verbs = append(at.verbs, c.Name())
	}
	for _, c := range all {
		at.adapt(c)
	}
	root.AddCommand(all...)
	return verbs
}

// adapt turns a verb about the folder DIR into one about the database of the program.
func (at *Elsewhere) adapt(c *cobra.Command) {
	c.Use = strings.Replace(c.Use, " DIR", "", 1)
	c.Long, c.Example = at.Words(c.Long), at.Words(c.Example)
	// arguments are checked before there is a place
	withPlace := func(args []string) []string { return append([]string{cmp.Or(at.Place, "DIR")}, args...) }
	valid, run := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error { return valid(c, withPlace(args)) }
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, withPlace(args)) }
}

// Words puts the program into the command lines of a text.
func (at *Elsewhere) Words(text string) string {
	if at == nil {
		return text
	}
	lines := shell.CommandLines(at.verbs, cmp.Or(at.Place, "DIR"))
	return lines.ReplaceAllString(text, at.Program+" $1")
}

// is reports whether a verb is about the database of the program.
func (at *Elsewhere) is(dir string) bool { return at != nil && dir == at.Place }
