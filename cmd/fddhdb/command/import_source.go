package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
)

// An importID tells imports apart. A command that was interrupted goes on when one with the same
// command and files comes.
type importID struct {
	command string // hash of the paths of the files, and of the flags that matter
	files   string // hash of the sizes of the files, and of when they were modified
}

// harmlessFlags are flags that may differ when an import goes on. The collection is in the name of
// the mark.
var harmlessFlags = []string{"init", "json", "mode", "from-row", "on-error", "collection"}

// idOf returns what identifies the import. It is zero if the import cannot go on, because a file
// is standard input or not a regular file.
func idOf(cmd *cobra.Command, in *source.Files, o *importOptions) importID {
	if o.fromStdin() > 0 {
		return importID{}
	}
	command, files := sha256.New(), sha256.New()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(harmlessFlags, f.Name) {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(*flags.NamedList); ok { // those of --vectors are files, which come below
			for _, n := range list.List {
				if value += n.Name + ","; f.Name != "vectors" {
					value += n.Value + ","
				}
			}
		}
		fmt.Fprintf(command, "%s=%s\n", f.Name, value)
	})
	var paths []string
	for _, source := range in.Together {
		paths = append(paths, source.Path())
	}
	if o.names != "" {
		paths = append(paths, o.names)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		member := ""
		if err != nil { // FILE.npz:NAME
			if i := strings.LastIndexByte(path, ':'); i > 0 {
				path, member = path[:i], path[i+1:]
				info, err = os.Stat(path)
			}
		}
		if err != nil || !info.Mode().IsRegular() {
			return importID{}
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return importID{}
		}
		fmt.Fprintf(command, "%s:%s\n", abs, member)
		fmt.Fprintf(files, "%d %d\n", info.Size(), info.ModTime().UnixNano())
	}
	hash := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }
	return importID{hash(command), hash(files)}
}

// wasInterrupted reports whether the collection has a mark of this import.
func (l *loader) wasInterrupted(d *db.DB) bool {
	c, err := d.Collection(l.o.collection)
	if err != nil {
		return false
	}
	mark, err := l.markIn(d, c)
	return err == nil && mark != nil
}

// stdinName is the name that stands for standard input.
const stdinName = "-"

// fromStdin returns how many files are standard input.
func (o *importOptions) fromStdin() (n int) {
	if o.items == stdinName {
		n++
	}
	for _, v := range o.vectors.List {
		if v.Value == stdinName {
			n++
		}
	}
	return n
}

// readStdin copies standard input, if a file is -.
func (e *env) readStdin(ctx context.Context, o *importOptions, bar *term.Progress) (err error) {
	switch {
	case o.fromStdin() == 0:
		return nil
	case e.session != nil:
		return exit.Usagef("-: the shell reads its lines from standard input: import from a file, or outside of the shell")
	}
	o.stdin, err = source.ReadStdin(ctx, e.stdin, o.items == "", func(bytes int64) {
		bar.Bytes("reading standard input", bytes, 0)
	})
	return err
}

// input returns what a flag names: the file, or for "-" the copy of standard input.
func (o *importOptions) input(file string) source.Input {
	if file == stdinName && o.stdin != nil {
		return o.stdin.Input
	}
	return source.Input{Path: file, Name: file}
}

// An itemTable prints items without their vectors and payloads, a row each.
type itemTable struct {
	table   *term.Table
	fields  []db.Field
	origins bool // a column after each code says what it was made from: for programs
	any     bool // an item has been added
}

// newItemTable begins a table of the items of a collection.
func (e *env) newItemTable(c *db.Collection) (*itemTable, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	t := &itemTable{fields: schema.Fields, origins: e.Flat()}
	columns := append([]term.Column{term.Left("key"), term.Left("labels")},
		textform.FieldColumns(t.fields)...)
	columns = append(columns, term.Left("code"))
	if t.origins {
		columns = append(columns, term.Left("code from"))
	}
	t.table = e.NewLongTable(columns)
	return t, nil
}

func (t *itemTable) add(it *db.Item) {
	cells := []any{term.TextCell(it.Key), term.TextCell(strings.Join(it.Labels, ","))}
	cells = append(cells, textform.FieldCells(t.fields, it)...)
	cells = append(cells, term.TextCell(hex.EncodeToString(it.Code)))
	if t.origins {
		cells = append(cells, term.TextCell(it.CodeFrom))
	}
	t.table.Add(cells...)
	t.any = true
}

// end ends the table. Without items people and scripts that read text get nothing.
func (t *itemTable) end() {
	if t.any || t.origins {
		t.table.End()
	}
}

// itemPrinter returns a function that prints items as the user wants: as JSON or as rows
// of a table, which end ends.
func (e *env) itemPrinter(c *db.Collection, asJSON bool) (print func(*db.Item) error, end func(), err error) {
	if asJSON {
		return e.printItemJSON, func() {}, nil
	}
	t, err := e.newItemTable(c)
	if err != nil {
		return nil, nil, err
	}
	return func(it *db.Item) error { t.add(it); return nil }, t.end, nil
}

// wholeItemPrinter is itemPrinter for few items, which people see with all that they have.
func (e *env) wholeItemPrinter(c *db.Collection,
	asJSON bool) (print func(*db.Item) error, end func(), err error) {
	if asJSON || e.Flat() {
		return e.itemPrinter(c, asJSON)
	}
	return func(it *db.Item) error { textform.PrintItem(e.Printer, it); return nil }, func() {}, nil
}
