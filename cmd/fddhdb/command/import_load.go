package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A loader stores the items of files.
type loader struct {
	*source.Files
	o       *importOptions
	bar     *term.Progress
	warnf   func(format string, args ...any)
	id      importID // zero: the import cannot go on after an interruption
	from    int      // the row to begin with
	before  int      // items that the import had stored when it was interrupted
	items   int      // stored with these, or checked in a dry run
	skipped source.SkippedRows
	created *db.Schema // schema of the collection of --init
}

// loadNew creates the collection for the files and loads them. If an interrupted import
// of the same files has created it already, it goes on with that one.
func (l *loader) loadNew(cmd *cobra.Command, d *db.DB) error {
	schema, err := l.Schema()
	if err == nil && l.o.index != "" {
		schema.Fields, err = indexed(schema.Fields, l.o.index)
	}
	if err != nil {
		return err
	}
	c, err := createCollection(cmd, d, l.o.collection, schema)
	switch {
	case errors.Is(err, db.ErrExists) && l.wasInterrupted(d):
		c, err = d.Collection(l.o.collection)
	case err == nil && l.id != (importID{}):
		// From here on the same command goes on with this collection.
		b := d.NewBatch()
		if err = l.mark(b, c, 0, 0); err == nil {
			err = b.Commit(cmd.Context())
		}
	}
	if err != nil {
		return err
	}
	l.created = &schema
	return l.load(cmd.Context(), d, c)
}

// indexed returns fields, with an index of those that --index names: all, none or a list.
func indexed(fields []db.Field, index string) ([]db.Field, error) {
	list := strings.Split(index, ",")
	switch index {
	case "none":
		list = nil
	case "all":
		list = namesOf(fields)
	}
	out := slices.Clone(fields)
	for i := range out {
		out[i].Indexed = slices.Contains(list, out[i].Name)
	}
	for _, name := range list {
		if !slices.Contains(namesOf(fields), name) {
			return nil, exit.Usagef("--index: the files have no field %q: all, none and lists of %s are possible", name, term.OrDash(strings.Join(namesOf(fields), ",")))
		}
	}
	return out, nil
}

func namesOf(fields []db.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// load stores the items of all rows.
func (l *loader) load(ctx context.Context, d *db.DB, c *db.Collection) error {
	if err := l.Check(c, l.o.merge); err != nil {
		return err
	}
	p, err := l.newParts(ctx, d, c)
	if err != nil {
		return err
	}
	if l.Labels != nil && l.Labels.Ordered {
		if err := p.b.RegisterLabels(c, l.Labels.Names()); err != nil {
			return exit.Failedf("%s: %s", cmp.Or(l.o.names, l.Labels.Path()), exit.Reason(err.Error()))
		}
	}
	err = l.each(ctx, func(row int, item *db.Item, err error) error {
		if err == nil {
			if err = p.put(item); err == nil && p.b.Full() {
				return p.commit(true)
			}
			if errors.Is(err, db.ErrInvalid) {
				err = &source.RowError{Err: exit.Failedf("%s: row %d: %s", l.Names(), row, exit.Reason(err.Error()))}
			}
		}
		var bad *source.RowError
		if l.o.skip && errors.As(err, &bad) {
			p.skip(exit.Message(err))
			return nil
		}
		return err
	})
	if err == nil {
		l.bar.Report("storing", 0, 0)
		err = p.end()
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// each calls f with the rows from the one at which the import goes on. f gets an item,
// which is valid until f returns, or the error of the row. The next rows are read while
// f works.
func (l *loader) each(ctx context.Context, f func(row int, item *db.Item, err error) error) error {
	rows := l.Rows()
	row := l.from
	return l.Pipeline(ctx, l.from, func(r *source.Row) error {
		if (row-l.from)%1000 == 0 {
			l.bar.Report("reading", int64(row-l.from), int64(max(0, rows-l.from)))
		}
		row++
		return f(row-1, &r.Item, r.Err)
	})
}
