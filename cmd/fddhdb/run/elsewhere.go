package run

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/db/api"
)

// An Elsewhere is the database of another program, which is in no folder, such as a cluster.
type Elsewhere struct {
	Program string // name of the program, which stands in texts in place of fddhdb DIR
	Place   string // what texts call the database, such as "cluster main"; set it before a verb runs

	// Open opens the database for a verb, which closes it.
	Open func(ctx context.Context) (api.Database, error)

	verbs []string // of the program
}

// Add adds verbs to the program, each without DIR, and returns them by name.
func (at *Elsewhere) Add(root *cobra.Command, all []*cobra.Command) map[string]*cobra.Command {
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
