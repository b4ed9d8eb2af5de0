package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// An importMark is the value of the mark that an import leaves with each part, as JSON. The same
// import goes on there.
type importMark struct {
	Files   string                  `json:"files"` // importID.files
	Row     int                     `json:"row"`   // the first row that is not in
	Items   int                     `json:"items"` // that are in
	Skipped []*source.SkippedReason `json:"skipped,omitempty"`
}

// maxReason is the length to which the reasons for skipped rows are cut in a mark, in bytes, so that
// those of source.SkippedRows fit.
const maxReason = 256

// name returns the name of the mark of an import into a collection.
func (id importID) name(c *db.Collection) string {
	return fmt.Sprintf("fddhdb import/%d/%s", c.ID(), id.command)
}

// markIn returns the mark of the import, nil if there is none.
func (l *loader) markIn(d *db.DB, c *db.Collection) (*importMark, error) {
	if l.id == (importID{}) {
		return nil, nil
	}
	b, err := d.Mark(l.id.name(c))
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	m := &importMark{}
	if err == nil {
		err = json.Unmarshal(b, m)
	}
	return m, err
}

// parts stores the rows of an import. It commits whenever the batch is full, with a mark of how
// far it is, so that an import takes little memory and the same command goes on after an
// interruption. A dry run commits nothing.
type parts struct {
	ctx    context.Context
	l      *loader
	d      *db.DB
	c      *db.Collection
	b      *db.Batch
	row    int  // the next row
	in     int  // the first row that is not in
	items  int  // in b
	marked bool // the database has a mark of this import
}

// newParts returns parts that begin at the row of --from-row, or where the same import was
// interrupted, and tells of the latter.
func (l *loader) newParts(ctx context.Context, d *db.DB, c *db.Collection) (*parts, error) {
	p := &parts{ctx: ctx, l: l, d: d, c: c, b: d.NewBatch()}
	mark, err := l.markIn(d, c)
	if err != nil {
		return nil, err
	}
	p.marked = mark != nil
	switch {
	case l.o.fromRow >= 0:
		l.from = l.o.fromRow
		if rows := l.Rows(); rows >= 0 && l.from > rows {
			return nil, exit.Usagef("--from-row %d: the files have %s", l.from, term.Plural(rows, "row", "rows"))
		}
	case l.o.dryRun || mark == nil || mark.Row == 0:
	case mark.Files != l.id.files:
		return nil, exit.Failedf("%s: changed since this import was interrupted, when %s: --from-row %d goes on there, --from-row 0 begins anew",
			l.Names(), l.rowsIn(mark.Row), mark.Row)
	default:
		l.from, l.before, l.items = mark.Row, mark.Items, mark.Items
		l.skipped.GoOn(mark.Skipped)
		l.warnf("going on at row %s, where this import was interrupted (--from-row 0 begins anew)", l.ofRows(l.from))
	}
	p.row, p.in = l.from, l.from
	return p, nil
}

// ofRows returns a number of rows, and of how many where that is known.
func (l *loader) ofRows(n int) string {
	if rows := l.Rows(); rows >= 0 {
		return term.Thousands(n) + " of " + term.Thousands(rows)
	}
	return term.Thousands(n)
}

// rowsIn returns the words for so many rows being stored.
func (l *loader) rowsIn(n int) string {
	if rows := l.Rows(); rows >= 0 {
		return l.ofRows(n) + " rows are in"
	}
	return term.Plural(n, "row is in", "rows are in")
}

// put adds the item of the next row. One that gives ErrInvalid is left out: skip may follow.
func (p *parts) put(item *db.Item) error {
	if p.l.o.skip { // a batch is lost after a bad item
		if err := p.add(p.d.NewBatch(), item); err != nil {
			return err
		}
	}
	if err := p.add(p.b, item); err != nil {
		return err
	}
	p.items++
	p.row++
	return nil
}

func (p *parts) add(b *db.Batch, item *db.Item) error {
	if p.l.o.merge {
		return b.Merge(p.c, item)
	}
	return b.Put(p.c, item)
}

// skip leaves out the next row.
func (p *parts) skip(why string) {
	p.l.skipped.Add(p.row, why)
	p.row++
}

// commit stores the batch, with a mark or without one.
func (p *parts) commit(mark bool) error {
	l := p.l
	if !l.o.dryRun {
		if mark = mark && l.id != (importID{}); mark {
			if err := l.mark(p.b, p.c, p.row, l.items+p.items); err != nil {
				return err
			}
		}
		if err := p.b.Commit(p.ctx); err != nil {
			if errors.Is(err, db.ErrInvalid) {
				err = exit.Failedf("%w", err)
			}
			return err
		}
	}
	p.marked = p.marked || mark
	l.items += p.items
	p.in, p.items, p.b = p.row, 0, p.d.NewBatch()
	return nil
}

// mark adds the mark to a batch.
func (l *loader) mark(b *db.Batch, c *db.Collection, row, items int) error {
	m := importMark{Files: l.id.files, Row: row, Items: items}
	for _, g := range l.skipped.Groups {
		short := *g
		short.Reason = short.Reason[:min(len(short.Reason), maxReason)]
		m.Skipped = append(m.Skipped, &short)
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Mark(l.id.name(c), value)
}

// end stores what is left, and takes away the mark: so an import that is interrupted before
// that stores nothing twice.
func (p *parts) end() error {
	if p.b.Len() > 0 {
		if err := p.commit(p.marked); err != nil {
			return err
		}
	}
	if p.l.o.dryRun || !p.marked {
		return nil
	}
	p.b.Mark(p.l.id.name(p.c), nil)
	return p.b.Commit(p.ctx)
}

// failed returns an error with what is in, and how to go on.
func (p *parts) failed(err error) error {
	var bad *source.RowError
	isBad := errors.As(err, &bad)
	switch {
	case isBad && p.in == 0:
		return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
	case p.in == 0:
		return err
	case isBad:
		return &partlyError{exit.Failedf("%w", err), fmt.Sprintf(
			"%s: --on-error skip leaves such rows out and goes on; with a file that you have corrected, --from-row %d goes on", p.l.rowsIn(p.in), p.in)}
	case p.l.id == (importID{}):
		return &partlyError{err, fmt.Sprintf("%s: with the same input, --from-row %d goes on", p.l.rowsIn(p.in), p.in)}
	}
	return &partlyError{err, p.l.rowsIn(p.in) + ": give the same command again to go on"}
}

// A partlyError ends an import of which a part is stored.
type partlyError struct {
	err error
	in  string // what is stored, and how to go on
}

func (e *partlyError) Error() string { return e.err.Error() + "; " + e.in }
func (e *partlyError) Unwrap() error { return e.err }
