package state

import (
	"context"
	"log/slog"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// Rows are merged into an index of vectors many at a time. Their entries are computed from a view, beside
// writers. One commit stores the entries of the rows that have not changed since. Each row goes to the cell
// with the nearest centre, if it fits there. Vectors of a kind that is new since the index was made, or that
// lie closer together, do not fit: a search at home in one cell would not look for them in another, and the
// measured recall does not cover them. They overfill their cells (cells.Table.Overfull). Such rows stay
// loose: they remain stale, and every search compares them, until the index is rebuilt with cells for them
// (learn.KeepRenewed).

// TakeIn merges up to limit rows into an index: first stale rows, then the rows after the covered ones. While
// an index is being made, these are the unchanged rows that existed when its cells were found. TakeIn works
// on so many goroutines, on a view, and leaves rows that change meanwhile stale. left is the number of rows
// that then remain. The caller runs one TakeIn at a time for an index. An index that does not exist or is not
// loaded has no rows to merge.
func (d *Database) TakeIn(ctx context.Context, collection, id uint32, workers,
	limit int) (left int, err error) {
	v, err := d.record(ctx, collection, id)
	if v == nil || err != nil {
		return 0, err
	}
	defer v.Release()
	defer func() {
		_ = d.Committer.Look(context.WithoutCancel(ctx), func() error {
			if _, x := d.loadedIndex(collection, id); x != nil && x.Complete {
				x.Changed = nil
			}
			return nil
		})
	}()
	cv, there := v.Collections.Get(collection)
	if !there {
		return 0, nil
	}
	xv := cv.IndexNumber(id)
	if xv == nil || xv.Table == nil {
		return 0, nil
	}
	f, err := xv.readMerge(ctx, v.Snap, cv, workers, limit)
	if f == nil || err != nil {
		return 0, err
	}
	xv.leaveLoose(f)
	err = d.Committer.Do(ctx, foldBytes+len(f.rows)*cells.EntryBytes(xv.Dim), func(tx *Tx) error {
		s, x := d.loadedIndex(collection, id)
		if x == nil || x.Table.Table().Centres() != xv.Table.Centres() {
			tx.Empty = true
			return nil
		}
		tx.Committer.Touch(s)
		left, err = f.store(tx, s, x)
		return err
	})
	return left, err
}

// foldBytes is about how much a merge writes besides entries: whole blocks.
const foldBytes = 4 << 20

// loadedIndex returns the state of an index with its entries in memory, nil if there is none.
func (d *Database) loadedIndex(collection, id uint32) (s *CollectionState, x *IndexState) {
	if s = d.Committer.States[collection]; s != nil {
		if x = s.IndexByID(id); x != nil && x.Table != nil {
			return s, x
		}
	}
	return nil, nil
}

// record begins to record changed rows of an index, and returns the view of that moment, for the caller to
// release; nil if there is no such index.
func (d *Database) record(ctx context.Context, collection, id uint32) (v *View, err error) {
	err = d.Committer.Look(ctx, func() error {
		if _, x := d.loadedIndex(collection, id); x != nil {
			// Both in one request, so no write falls between them.
			if x.Complete {
				x.Changed = roaring.New()
			}
			v = d.Current.Load()
			v.Acquire()
		}
		return nil
	})
	return v, err
}

// An indexMerge is a set of rows to merge into an index.
type indexMerge struct {
	rows    []uint32
	entries []*cells.Entry // parallel to rows; nil: the row has no vector any more, or stays loose
	loose   *roaring.Bitmap
	until   uint64 // the index then covers the rows below it
}

// leaveLoose marks the rows of a merge that would overfill their cells as loose: all rows of such a cell, as
// they are probably of one kind. Before an index is complete no row is loose: all existed when its cells were
// found.
func (x *IndexView) leaveLoose(f *indexMerge) {
	f.loose = roaring.New()
	if !x.Complete {
		return
	}
	more := map[uint32]float64{}
	for _, e := range f.entries {
		if e != nil {
			more[e.Cell] += x.Table.Weight(e)
		}
	}
	for i, e := range f.entries {
		if e != nil && x.Table.Overfull(e.Cell, more[e.Cell]) {
			f.loose.Add(f.rows[i])
			f.entries[i] = nil
		}
	}
}

// store merges the rows into the index, and returns how many rows then remain.
func (f *indexMerge) store(tx *Tx, s *CollectionState, x *IndexState) (left int, err error) {
	d := *x.VectorIndex
	for i, row := range f.rows {
		changed := x.Changed.Contains(row) // a later merge takes it
		loose := f.loose.Contains(row)     // not counted in Churn: every process finds loose rows again
		if !changed && !loose {
			d.Churn++
		}
		tx.setStale(x, row, changed || loose)
		if !changed {
			tx.setEntry(x, row, f.entries[i])
			if loose {
				x.Loose.Edit().Add(row)
			}
		}
	}
	// A row without a vector may have got one meanwhile.
	for it := x.Changed.Iterator(); it.HasNext(); {
		if row := it.Next(); uint64(row) >= x.Covered && uint64(row) < f.until {
			tx.setStale(x, row, true)
		}
	}
	d.Covered = f.until
	if err := tx.writeIndex(x, &d); err != nil {
		return 0, err
	}
	if !x.Complete {
		return int(x.until - d.Covered), nil
	}
	return int(s.Counters.NextRow-d.Covered) + int(x.Stale.B.GetCardinality()-x.Loose.B.GetCardinality()), nil
}

// Unmerged returns how many rows the index does not know, including loose rows and rows of deleted items.
func (x *IndexView) Unmerged(nextRow uint64) int {
	return int(nextRow-x.Covered) + int(x.Stale.GetCardinality())
}

// foldPart is the number of rows that one goroutine reads and encodes at a time.
const mergePart = codec.BlockRows

// readMerge makes the entries of the next rows to merge; nil if there are none.
func (x *IndexView) readMerge(ctx context.Context, r pebble.Reader, cv *CollectionView, workers,
	limit int) (*indexMerge, error) {
	var stale []uint32
	last := x.until
	if x.Complete {
		for it := roaring.AndNot(x.Stale, x.Loose).Iterator(); it.HasNext() && len(stale) < limit; {
			stale = append(stale, it.Next())
		}
		last = cv.NextRow
	}
	until := min(max(last, x.Covered), x.Covered+uint64(limit-len(stale)))
	if len(stale) == 0 && until == x.Covered {
		return nil, nil
	}
	having := roaring.And(cv.Live, cv.Presence[x.Modality])
	ofStale := (len(stale) + mergePart - 1) / mergePart
	parts := make([]indexMerge, ofStale+int(until-x.Covered+mergePart-1)/mergePart)
	err := work.ParallelBy(ctx, workers, 1, len(parts), func(i int) error {
		f, e := &parts[i], x.newEncoder(&cv.Modalities[x.Modality])
		if i < ofStale {
			return f.readRows(e, r, cv, having, stale[i*mergePart:min((i+1)*mergePart, len(stale))])
		}
		from := x.Covered + uint64(i-ofStale)*mergePart
		return f.readRange(e, r, cv, having, from, min(from+mergePart, until))
	})
	if err != nil {
		return nil, err
	}
	f := &indexMerge{until: until}
	for _, p := range parts {
		f.rows, f.entries = append(f.rows, p.rows...), append(f.entries, p.entries...)
	}
	return f, nil
}

// readRows adds rows, with an entry for each row that has a vector.
func (f *indexMerge) readRows(e *encoder, r pebble.Reader, cv *CollectionView, having *roaring.Bitmap,
	rows []uint32) error {
	for _, row := range rows {
		if !having.Contains(row) {
			f.rows, f.entries = append(f.rows, row), append(f.entries, nil)
			continue
		}
		value, err := record.Get(r, codec.FeatureKey(cv.ID, row, uint16(e.modality)))
		if err == nil && value == nil {
			err = fault.ErrMissing
		}
		if err != nil {
			return fault.ReadError(err, "features %q of row %d", e.Name, row)
		}
		if err := f.add(e, row, value); err != nil {
			return err
		}
	}
	return nil
}

// readRange adds the rows of a range that have a vector, with their entries.
func (f *indexMerge) readRange(e *encoder, r pebble.Reader, cv *CollectionView, having *roaring.Bitmap, from,
	to uint64) error {
	lo, hi := codec.FeatureKey(cv.ID, uint32(from), 0), codec.FeatureKey(cv.ID, uint32(to), 0)
	return record.ForEachIn(r, lo, hi, func(key, value []byte) error {
		row, t := codec.FeatureKeyParts(key)
		if int(t) != e.modality || !having.Contains(row) {
			return nil
		}
		return f.add(e, row, value)
	})
}

// add adds a row with the entry of its vector, stored as value.
func (f *indexMerge) add(e *encoder, row uint32, value []byte) error {
	entry, err := e.encode(value)
	if err != nil {
		return fault.Corrupt(err, "features %q of row %d", e.Name, row)
	}
	f.rows, f.entries = append(f.rows, row), append(f.entries, entry)
	return nil
}

// An encoder makes entries of stored vectors. It belongs to one goroutine.
type encoder struct {
	*record.Modality
	modality int
	centres  *cells.Centres
	vector   model.Vector
	placed   []float32
	query    *cells.Query
}

func (x *IndexView) newEncoder(m *record.Modality) *encoder {
	c := x.Table.Centres()
	return &encoder{Modality: m, modality: x.Modality, centres: c, placed: make([]float32, c.Size()),
		query: c.NewQuery()}
}

func (e *encoder) encode(value []byte) (*cells.Entry, error) {
	if err := e.DecodeVector(&e.vector, value); err != nil {
		return nil, err
	}
	e.centres.Place(e.placed, e.vector.Value)
	e.query.Set(e.placed)
	entry := new(cells.Entry)
	e.centres.Encode(entry, e.placed, e.centres.Nearest(e.query))
	return entry, nil
}

// Placed reads the vectors of modality t of rows, on so many goroutines, and returns their coordinates in a
// geometry; nil for a row without one.
func (cv *CollectionView) Placed(ctx context.Context, r pebble.Reader, t int, g *cells.Geometry, workers int,
	rows []uint32) ([][]float32, error) {
	m := cv.Modalities[t]
	having := roaring.And(cv.Live, cv.Presence[t])
	placed := make([][]float32, len(rows))
	err := work.ParallelBy(ctx, workers, 64, len(rows), func(i int) error {
		if !having.Contains(rows[i]) {
			return nil
		}
		b, err := record.Get(r, codec.FeatureKey(cv.ID, rows[i], uint16(t)))
		if err == nil && b == nil {
			err = fault.ErrMissing
		}
		if err != nil {
			return fault.ReadError(err, "features %q of row %d", m.Name, rows[i])
		}
		var y model.Vector
		if err := m.DecodeVector(&y, b); err != nil {
			return fault.Corrupt(err, "features %q of row %d", m.Name, rows[i])
		}
		placed[i] = make([]float32, g.Size())
		g.Place(placed[i], y.Value)
		return nil
	})
	return placed, err
}

// KeepIndexes maintains indexes until nothing is due, or about so many rows have been merged.
func (d *Database) KeepIndexes(ctx context.Context, rows int) {
	for ; rows > 0 && d.keepIndexes(ctx); rows -= foldRows {
	}
}

// foldRows is the number of rows that one commit merges.
const foldRows = 4096

// keepDue reports whether an index of a collection has fallen behind, or is the leftover of an unfinished
// training.
func (d *Database) keepDue(cv *CollectionView) bool {
	if d.Committer.readOnly {
		return false
	}
	for i := range cv.Indexes {
		x := &cv.Indexes[i]
		if x.left || x.Table != nil && x.Behind(cv.NextRow) {
			return true
		}
	}
	return false
}

// keepIndexes does one step for each index: it drops a leftover, or merges rows. It reports whether it did a
// step: then there may be another. A failed step is due again when the collection changes next.
func (d *Database) keepIndexes(ctx context.Context) (done bool) {
	v := d.Latest()
	defer v.Release()
	if d.Committer.readOnly {
		return false
	}
	for cv := range v.Collections.Values() {
		for i := range cv.Indexes {
			x := &cv.Indexes[i]
			switch {
			case x.left:
				err := d.Committer.Free(ctx, func(tx *Tx) error {
					if s := d.Committer.States[cv.ID]; s != nil {
						if left := s.IndexByID(x.ID); left != nil {
							return tx.DropIndex(s, left)
						}
					}
					tx.Empty = true
					return nil
				})
				done = done || err == nil
			case x.Table != nil && x.Behind(cv.NextRow):
				op := d.Signals.BeginInBackground(ctx, event.OpIndex, cv.Name)
				_, err := d.TakeIn(ctx, cv.ID, x.ID, work.Background(), foldRows)
				op.End(fault.Annotate(err, "index %d of the vectors of collection %q", x.ID, cv.Name),
					event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.Int("index", int(x.ID))}})
				done = done || err == nil
			}
		}
	}
	return done
}
