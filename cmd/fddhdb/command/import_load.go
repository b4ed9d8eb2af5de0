package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

// skipCommitBytes is about how much --on-error skip stores in one commit.
const skipCommitBytes = 64 << 20

// A loader stores the items of files.
type loader struct {
	*importFiles
	o       *importOptions
	bar     *progress
	items   int // stored, or found good
	skipped int
	reasons []error    // the first few
	created *db.Schema // with --init
}

// shownReasons is how many skipped rows are explained.
const shownReasons = 5

// loadNew creates the collection for the files and loads them.
func (l *loader) loadNew(cmd *cobra.Command, d *db.DB) error {
	schema, err := l.schema()
	if err != nil {
		return err
	}
	c, err := createCollection(cmd, d, l.o.collection, schema)
	if err != nil {
		return err
	}
	l.created = &schema
	return l.load(cmd.Context(), d, c)
}

// load stores the items of all rows.
func (l *loader) load(ctx context.Context, d *db.DB, c *db.Collection) error {
	if err := l.check(c, l.o); err != nil {
		return err
	}
	if !l.o.skip {
		if err := l.checkSize(l.leastBytes(), 0); err != nil {
			return err
		}
	}
	batch := d.NewBatch()
	if l.labels != nil && l.labels.ordered {
		if err := batch.RegisterLabels(c, l.labels.labels.Names); err != nil {
			return failuref("%s: %s", cmp.Or(l.o.names, l.labels.file), reason(err.Error()))
		}
	}
	add := (*db.Batch).Put
	if l.o.merge {
		add = (*db.Batch).Merge
	}
	pending := 0
	item := newRow()
	for row := range l.rows() {
		if row%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.bar.report("reading", row, l.rows())
		}
		err := l.read(&item)
		if err == nil {
			err = l.try(d, c, &item, row, add)
		}
		var bad *rowError
		if errors.As(err, &bad) && l.o.skip {
			if l.skipped++; len(l.reasons) < shownReasons {
				l.reasons = append(l.reasons, err)
			}
			continue
		}
		if bad != nil {
			return failuref("%w; nothing was stored (--on-error skip leaves such rows out)", err)
		}
		if err == nil {
			err = add(batch, c, &item)
		}
		if err != nil {
			return l.rowFailure(row, err)
		}
		pending++
		switch {
		case batch.Bytes() <= skipCommitBytes:
		case l.o.skip:
			if err := l.commit(ctx, batch, pending); err != nil {
				return err
			}
			batch, pending = d.NewBatch(), 0
		default:
			if err := l.checkSize(int64(batch.Bytes()), row+1); err != nil {
				return err
			}
		}
	}
	l.bar.report("storing", 0, 0)
	return l.commit(ctx, batch, pending)
}

// read reads the next row of all files. All are read even if one is bad, so that
// they stay side by side.
func (l *loader) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	for _, s := range l.sources {
		err := s.next(item)
		var row *rowError
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if bad == nil {
			bad = err
		}
	}
	return bad
}

// try finds out whether an item can be stored, where bad ones are to be skipped:
// a batch does not forgive one.
func (l *loader) try(d *db.DB, c *db.Collection, item *db.Item, row int, add func(*db.Batch, *db.Collection, *db.Item) error) error {
	if !l.o.skip {
		return nil
	}
	err := add(d.NewBatch(), c, item)
	if errors.Is(err, db.ErrInvalid) {
		return &rowError{l.rowFailure(row, err)}
	}
	return err
}

// rowFailure says in which row an item is that db refuses.
func (l *loader) rowFailure(row int, err error) error {
	if !errors.Is(err, db.ErrInvalid) {
		return err
	}
	return failuref("row %d: %s", row, reason(err.Error()))
}

func (l *loader) commit(ctx context.Context, b *db.Batch, n int) error {
	if !l.o.dryRun {
		if err := b.Commit(ctx); err != nil {
			if errors.Is(err, db.ErrInvalid) {
				err = &failure{err}
			}
			if l.items > 0 && !l.o.init { // which takes back what it has created
				err = wrap(err, "%s are stored already", plural(l.items, "item", "items"))
			}
			return err
		}
	}
	l.items += n
	return nil
}

// leastBytes is what the dense vectors and codes alone take in a batch.
func (l *loader) leastBytes() int64 {
	a := l.leastRow
	if l.codes != nil {
		a += int64(l.codes.codes.Bits() / 8)
	}
	return a * int64(l.rows())
}

// checkSize refuses what is too large for one commit.
func (l *loader) checkSize(bytes int64, rows int) error {
	limit := int64(db.MaxBulkBytes)
	if l.o.merge {
		limit = db.MaxBatchBytes
	}
	if bytes <= limit {
		return nil
	}
	at := plural(l.rows(), "row", "rows")
	if rows > 0 {
		at = fmt.Sprintf("%s rows of %s", thousands(rows), thousands(l.rows()))
	}
	return failuref("%s take %s, more than one commit can hold (%s), and an import is one commit: use --on-error skip, which commits in parts, or split the files",
		at, size(bytes), size(limit))
}

// warn says why rows were skipped.
func (l *loader) warn(e *env) {
	for _, err := range l.reasons {
		e.warnf("skipped: %s", message(err))
	}
	if more := l.skipped - len(l.reasons); more > 0 {
		e.warnf("skipped: %s more", thousands(more))
	}
}

func (e *env) reportImport(l *loader, took float64) error {
	rate := 0.0
	if took > 0 {
		rate = float64(l.items) / took
	}
	if l.o.json {
		return e.printJSON(struct {
			Items   int     `json:"items"`
			Skipped int     `json:"skipped"`
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"items_per_second"`
			DryRun  bool    `json:"dry_run,omitempty"`
		}{l.items, l.skipped, took, rate, l.o.dryRun})
	}
	if l.created != nil && l.whole != nil {
		// What was found in the data is not what the user has written down.
		e.printf("collection %s, from %s: %s\n", l.o.collection, l.o.items, describeSchema(*l.created))
	}
	skipped := ""
	if l.skipped > 0 {
		skipped = fmt.Sprintf(", skipped %s", thousands(l.skipped))
	}
	if l.o.dryRun {
		e.printf("%s can be imported%s; nothing was stored\n", plural(l.items, "item", "items"), skipped)
		return nil
	}
	e.printf("imported %s%s in %s\n", plural(l.items, "item", "items"), skipped, seconds(took))
	return nil
}
