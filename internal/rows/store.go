package rows

import (
	"context"
	"errors"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// An Import stores rows as items of a collection. It commits whenever the batch is full, so that it takes
// little memory.
type Import struct {
	To   api.Database
	Into api.Collection

	// Done says how far the import is. Before Run it is how far an earlier one came; Run begins at the row
	// Done.Rows.
	Done

	Merge  bool          // a stored item keeps what its row lacks
	DryRun bool          // check everything, commit nothing
	Every  time.Duration // commit at least so often; 0: when the batch is full

	// These may be nil.
	Begin    func(b api.Batch) error                    // adds to the first batch
	Item     func(row int, item *db.Item) error         // completes an item
	Skip     func(row int, bad error) error             // nil leaves a bad row out, an error ends Run
	Mark     func(b api.Batch, d Done, last bool) error // before a commit, after which d holds
	Progress func(stage string, row, of int)            // of is 0 if the number of rows is not known

	batch   api.Batch
	pending Done            // with the rows that are not committed yet
	refused map[string]bool // keys of bad rows that no stored row has
}

// Stages of Progress.
const (
	Reading = "reading" // rows
	Storing = "storing" // the last part
)

// Done says what has become of the first rows.
type Done struct {
	Rows       int // committed, or left out
	Items      int // stored, or in a dry run checked
	Skipped    int
	Unchanged  int
	Duplicates int // rows whose keys other rows have, of which only one is stored
}

// Run stores the rows. If it fails, Done counts the rows that are stored.
func (m *Import) Run(ctx context.Context, in Together) error {
	m.batch, m.pending = m.To.NewBatch(), m.Done
	if m.Begin != nil {
		if err := m.Begin(m.batch); err != nil {
			return err
		}
	}
	from, rows := m.Rows, in.Rows()
	began := time.Now() // with the part in hand
	err := in.each(ctx, from, func(r *readRow) error {
		if m.Progress != nil && (m.pending.Rows%1000 == 0 || m.Every > 0) {
			m.Progress(Reading, m.pending.Rows-from, max(0, rows-from))
		}
		if err := m.add(in, r); err != nil {
			return err
		}
		m.pending.Rows++
		if r.err == nil && (m.batch.Full() || m.Every > 0 && time.Since(began) > m.Every) {
			began = time.Now()
			return m.commit(ctx, false)
		}
		return nil
	})
	if err == nil {
		if m.Progress != nil {
			m.Progress(Storing, 0, 0)
		}
		err = m.commit(ctx, true)
	}
	return err
}

// add adds a row to the batch, or leaves it out.
func (m *Import) add(in Together, r *readRow) error {
	err, key := r.err, r.item.Key
	if err == ErrDuplicate && m.refused[key] {
		err = nil // the earlier row was left out
	}
	if err == nil {
		if err = m.put(&r.item); errors.Is(err, db.ErrInvalid) {
			err = in.invalid(m.pending.Rows, err)
		}
	}
	var bad *Error
	switch {
	case err == nil && r.repeats && !m.refused[key], err == ErrDuplicate:
		m.pending.Duplicates++
	case err == nil:
		m.pending.Items++
		delete(m.refused, key)
	case err == ErrUnchanged:
		m.pending.Unchanged++
	case errors.As(err, &bad) && m.Skip != nil:
		m.pending.Skipped++
		if key != "" && len(key) <= db.MaxKeyBytes && !r.repeats {
			if m.refused == nil {
				m.refused = map[string]bool{}
			}
			m.refused[key] = true
		}
		return m.Skip(m.pending.Rows, err)
	default:
		return err
	}
	return nil
}

func (m *Import) put(item *db.Item) error {
	if m.Item != nil {
		if err := m.Item(m.pending.Rows, item); err != nil {
			return err
		}
	}
	add := func(b api.Batch) error {
		if m.Merge {
			return b.Merge(m.Into, item)
		}
		return b.Put(m.Into, item)
	}
	if m.Skip != nil { // a batch is lost after a bad item
		if err := add(m.To.NewBatch()); err != nil {
			return err
		}
	}
	return add(m.batch)
}

// commit stores the batch.
func (m *Import) commit(ctx context.Context, last bool) error {
	if m.batch.Len() > 0 && !m.DryRun {
		if m.Mark != nil {
			if err := m.Mark(m.batch, m.pending, last); err != nil {
				return err
			}
		}
		if err := m.batch.Commit(ctx); err != nil {
			return err
		}
	}
	m.Done, m.batch = m.pending, m.To.NewBatch()
	return nil
}
