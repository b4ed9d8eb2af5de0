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

// Rows are taken into an index of vectors many at a time: what they need is made of a view, beside
// writers, and one commit stores it, for the rows that have not changed since. Each row goes to the cell
// with the nearest centre, if it fits there. Vectors of a kind that was not there when the index was made,
// or that lie more closely together, do not: a search that is at home in one cell would not look for them
// in another, and what was measured says nothing of them. They overfill their cells (cells.Table.Overfull).
// So rows that would overfill a cell stay loose: they remain stale, and every search compares them, until
// the index is made anew with cells for them (learn.KeepRenewed).

// TakeIn takes up to limit rows into an index: those that are stale, then those that follow the ones that it
// covers. While an index is being made these are the rows that were there when its cells were found, and have
// not changed since. It works on so many goroutines, on a view, and leaves rows that change meanwhile stale.
// left says how many there are to take in then. The caller sees to it that there is one TakeIn at a time for
// an index. An index that is not there, or not loaded, has no rows to take in.
func (d *Database) TakeIn(ctx context.Context, collection, id uint32, workers, limit int) (left int, err error) {
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
	f, err := xv.readFold(ctx, v.Snap, cv, workers, limit)
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

// foldBytes is about what taking rows in writes besides entries: blocks that are written whole.
const foldBytes = 4 << 20

// loadedIndex returns the state of an index whose entries are in memory, nil where there is none.
func (d *Database) loadedIndex(collection, id uint32) (s *CollectionState, x *IndexState) {
	if s = d.Committer.States[collection]; s != nil {
		if x = s.IndexByID(id); x != nil && x.Table != nil {
			return s, x
		}
	}
	return nil, nil
}

// record begins to record which rows of an index change, and returns the view of that moment, for the
// caller to release; nil where there is no such index.
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

// A fold is rows that are taken into an index.
type fold struct {
	rows    []uint32
	entries []*cells.Entry // parallel to rows; nil: the row has no vector any more, or stays loose
	loose   *roaring.Bitmap
	until   uint64 // the index covers the rows below it then
}

// leaveLoose finds the rows of a fold that would overfill their cells: all that go to such a cell, as they
// are likely to be of one kind. Before an index is complete no row is loose: the
// rows that it takes in then were there when its cells were found.
func (x *IndexView) leaveLoose(f *fold) {
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

// store makes a fold part of the index, and returns how many rows there are to take in then.
func (f *fold) store(tx *Tx, s *CollectionState, x *IndexState) (left int, err error) {
	d := *x.VectorIndex
	for i, row := range f.rows {
		changed := x.Changed.Contains(row) // it is taken in another time
		loose := f.loose.Contains(row)     // counted as such, as every process finds that anew
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
	// A row that had no vector may have got one meanwhile.
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

// Unfolded returns how many rows the index does not know, with those whose items are gone and those that
// are loose.
func (x *IndexView) Unfolded(nextRow uint64) int {
	return int(nextRow-x.Covered) + int(x.Stale.GetCardinality())
}

// foldPart is how many rows one goroutine reads and encodes at a time.
const foldPart = codec.BlockRows

// readFold makes the entries of the rows that are to be taken in next; nil if there are none.
func (x *IndexView) readFold(ctx context.Context, r pebble.Reader, cv *CollectionView, workers, limit int) (*fold, error) {
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
	ofStale := (len(stale) + foldPart - 1) / foldPart
	parts := make([]fold, ofStale+int(until-x.Covered+foldPart-1)/foldPart)
	err := work.ParallelBy(ctx, workers, 1, len(parts), func(i int) error {
		f, e := &parts[i], x.newEncoder(&cv.Modalities[x.Modality])
		if i < ofStale {
			return f.readRows(e, r, cv, having, stale[i*foldPart:min((i+1)*foldPart, len(stale))])
		}
		from := x.Covered + uint64(i-ofStale)*foldPart
		return f.readRange(e, r, cv, having, from, min(from+foldPart, until))
	})
	if err != nil {
		return nil, err
	}
	f := &fold{until: until}
	for _, p := range parts {
		f.rows, f.entries = append(f.rows, p.rows...), append(f.entries, p.entries...)
	}
	return f, nil
}

// readRows adds rows, and their entries as far as they have a vector.
func (f *fold) readRows(e *encoder, r pebble.Reader, cv *CollectionView, having *roaring.Bitmap, rows []uint32) error {
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
func (f *fold) readRange(e *encoder, r pebble.Reader, cv *CollectionView, having *roaring.Bitmap, from, to uint64) error {
	lo, hi := codec.FeatureKey(cv.ID, uint32(from), 0), codec.FeatureKey(cv.ID, uint32(to), 0)
	return record.ForEachIn(r, lo, hi, func(key, value []byte) error {
		row, t := codec.FeatureKeyParts(key)
		if int(t) != e.modality || !having.Contains(row) {
			return nil
		}
		return f.add(e, row, value)
	})
}

// add adds a row with the entry of its vector, which is stored as value.
func (f *fold) add(e *encoder, row uint32, value []byte) error {
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
	return &encoder{Modality: m, modality: x.Modality, centres: c, placed: make([]float32, c.Size()), query: c.NewQuery()}
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

// Placed reads the vectors of modality t that rows have, on so many goroutines, and returns their
// coordinates in a geometry; nil where a row has none.
func (cv *CollectionView) Placed(ctx context.Context, r pebble.Reader, t int, g *cells.Geometry, workers int, rows []uint32) ([][]float32, error) {
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

// KeepIndexes keeps indexes until nothing is due, or about so many rows have been taken in.
func (d *Database) KeepIndexes(ctx context.Context, rows int) {
	for ; rows > 0 && d.keepIndexes(ctx); rows -= foldRows {
	}
}

// foldRows is how many rows are taken in by one commit.
const foldRows = 4096

// keepDue reports whether an index of a collection has fallen behind, or is left over from a training
// that has not ended.
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

// keepIndexes does one step for each index: it drops one that is left over, or takes in rows. It
// reports whether a step was done: then there may be another. One that fails is due again when the
// collection changes next.
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
				_, op := d.Signals.BeginUntraced(ctx, event.OpIndex, cv.Name)
				_, err := d.TakeIn(ctx, cv.ID, x.ID, work.Background(), foldRows)
				op.End(fault.Annotate(err, "index %d of the vectors of collection %q", x.ID, cv.Name),
					event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.Int("index", int(x.ID))}})
				done = done || err == nil
			}
		}
	}
	return done
}
