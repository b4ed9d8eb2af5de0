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
	source  string // identity of the import, see db.ImportOptions; "" if unknown
	from    int    // rows that an interrupted import has staged
	before  int    // items among them
	items   int    // stored, or checked in a dry run
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
	if errors.Is(err, db.ErrExists) && l.isStaged(cmd.Context(), d) {
		c, err = d.Collection(l.o.collection)
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
	to, err := l.sink(ctx, d, c)
	if err != nil {
		return err
	}
	if l.Labels != nil && l.Labels.Ordered {
		if err := to.register(l.Labels.Names()); err != nil {
			return to.failed(exit.Failedf("%s: %s", cmp.Or(l.o.names, l.Labels.Path()), exit.Reason(err.Error())))
		}
	}
	if err := l.each(ctx, func(row int, item *db.Item, err error) error {
		if err == nil {
			if err = to.put(item); errors.Is(err, db.ErrInvalid) {
				err = &source.RowError{Err: exit.Failedf("%s: row %d: %s", l.Names(), row, exit.Reason(err.Error()))}
			}
		}
		var bad *source.RowError
		switch {
		case !errors.As(err, &bad):
			return err
		case !l.o.skip:
			return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
		}
		why := exit.Message(err)
		l.skipped.Add(row, why)
		return to.skip(why)
	}); err != nil {
		return to.failed(err)
	}
	l.bar.Report("storing", 0, 0)
	if err := to.commit(ctx); err != nil {
		if errors.Is(err, db.ErrInvalid) {
			err = exit.Failedf("%w", err)
		}
		return to.failed(err)
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

// leastBytes returns the bytes of the dense vectors and codes alone.
func (l *loader) leastBytes() int64 {
	a := l.LeastRow
	if l.Codes != nil {
		a += int64(l.Codes.Bits() / 8)
	}
	return a * int64(max(l.Rows(), 0))
}
