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

// Rows are taken into an index of vectors many at a time: what they need is made of a view, and one
// commit stores it, for the rows that have not changed since.

// change changes an index in one commit. make reads a view of the index, beside writers, and returns a
// function that the commit calls, and how many entries this function writes; nil if there is nothing to
// do. The function must leave out rows that were written since the view (IndexState.Changed). The caller
// runs one change of an index at a time. Nothing happens if the index is gone or not loaded, or if its
// centres have changed since the view. done reports whether the function ran.
func (d *Database) change(ctx context.Context, collection, id uint32, make func(v *View, cv *CollectionView, x *IndexView) (func(tx *Tx, s *CollectionState, x *IndexState) error, int, error)) (done bool, err error) {
	var v *View
	find := func() (s *CollectionState, x *IndexState) {
		if s = d.Committer.States[collection]; s != nil {
			if x = s.IndexByID(id); x != nil && x.Table != nil {
				return s, x
			}
		}
		return nil, nil
	}
	err = d.Committer.Look(ctx, func() error {
		if _, x := find(); x != nil {
			// Recording and the view begin in one request, so no write falls between them.
			x.Changed = roaring.New()
			v = d.Current.Load()
			v.Acquire()
		}
		return nil
	})
	if v == nil || err != nil {
		return false, err
	}
	defer v.Release()
	defer func() {
		_ = d.Committer.Look(context.WithoutCancel(ctx), func() error {
			if _, x := find(); x != nil {
				x.Changed = nil
			}
			return nil
		})
	}()
	cv, there := v.Collections.Get(collection)
	if !there {
		return false, nil
	}
	xv := cv.IndexNumber(id)
	if xv == nil || xv.Table == nil {
		return false, nil
	}
	apply, entries, err := make(v, cv, xv)
	if apply == nil || err != nil {
		return false, err
	}
	err = d.Committer.Do(ctx, changeBytes+entries*cells.EntryBytes(xv.Dim), func(tx *Tx) error {
		s, x := find()
		if x == nil || x.Table.Table().Centres() != xv.Table.Centres() {
			tx.Empty = true
			return nil
		}
		done = true
		tx.Committer.Touch(s)
		return apply(tx, s, x)
	})
	return done, err
}

// changeBytes is about what a change of an index writes besides its entries: blocks that are written
// whole, and centres.
const changeBytes = 4 << 20

// FoldIndex takes up to limit rows into an index: those that are stale, then those that follow the
// ones that it covers. It encodes on so many goroutines, of a view, and leaves rows that change
// meanwhile stale. left says how many there are to take in then. The caller sees to it that there is
// one at a time for an index. An index that is not there, or not loaded, has none.
func (d *Database) FoldIndex(ctx context.Context, collection, id uint32, workers, limit int) (left int, err error) {
	_, err = d.change(ctx, collection, id, func(v *View, cv *CollectionView, xv *IndexView) (func(*Tx, *CollectionState, *IndexState) error, int, error) {
		f, err := xv.readFold(ctx, v.Snap, cv, workers, limit)
		if f == nil || err != nil {
			return nil, 0, err
		}
		return func(tx *Tx, s *CollectionState, x *IndexState) error {
			for i, row := range f.rows {
				// What has changed meanwhile is taken in another time.
				changed := x.Changed.Contains(row)
				tx.setStale(x, row, changed)
				if !changed {
					tx.setEntry(x, row, f.entries[i])
				}
			}
			// Also a row that had no vector, and has got one meanwhile.
			for it := x.Changed.Iterator(); it.HasNext(); {
				if row := it.Next(); uint64(row) >= x.Covered && uint64(row) < f.until {
					tx.setStale(x, row, true)
				}
			}
			next := *x.VectorIndex
			next.Covered = f.until
			left = int(s.Counters.NextRow-next.Covered) + int(x.Stale.B.GetCardinality())
			return tx.writeIndex(x, &next)
		}, len(f.rows), nil
	})
	return left, err
}

// A fold is rows that are taken into an index.
type fold struct {
	rows    []uint32
	entries []*cells.Entry // parallel to rows; nil: the row has no vector any more
	until   uint64         // the index covers the rows below it then
}

// Unfolded returns how many rows the index does not know, with those whose items are gone.
func (x *IndexView) Unfolded(nextRow uint64) int {
	return int(nextRow-x.Covered) + int(x.Stale.GetCardinality())
}

// foldPart is how many rows one goroutine reads and encodes at a time.
const foldPart = codec.BlockRows

// readFold makes the entries of the rows that are to be taken in next; nil if there are none.
func (x *IndexView) readFold(ctx context.Context, r pebble.Reader, cv *CollectionView, workers, limit int) (*fold, error) {
	var stale []uint32
	for it := x.Stale.Iterator(); it.HasNext() && len(stale) < limit; {
		stale = append(stale, it.Next())
	}
	until := min(max(cv.NextRow, x.Covered), x.Covered+uint64(limit-len(stale)))
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
		if x.left || x.Complete && x.Table != nil && x.Unfolded(cv.NextRow) >= cells.FoldAfter {
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
			case x.Complete && x.Table != nil && x.Unfolded(cv.NextRow) >= cells.FoldAfter:
				_, op := d.Signals.BeginUntraced(ctx, event.OpIndex, cv.Name)
				left, err := d.FoldIndex(ctx, cv.ID, x.ID, work.Background(), foldRows)
				for tended := left < cells.FoldAfter; tended && err == nil; {
					tended, err = d.tendIndex(ctx, cv.ID, x.ID, work.Background(), d.wholeOf(cv.ID, x.ID))
				}
				op.End(fault.Annotate(err, "index %d of the vectors of collection %q", x.ID, cv.Name),
					event.Event{Level: slog.LevelDebug, Attrs: []slog.Attr{slog.Int("index", int(x.ID))}})
				done = done || err == nil
			}
		}
	}
	return done
}
