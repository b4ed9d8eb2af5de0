package state

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/model"
)

// An index of vectors is behind the items, and says by how much: it covers the rows below a row,
// less those that are stale, and searches compare the vectors of all others. So a write of an item
// tells an index at most that a row is stale, and rows are taken in many at a time, by a training
// and then by the indexer. What it keeps of rows whose items are gone stays until then, as searches
// look whether a row is live.

// An IndexState is what the committer knows of an index of vectors. Only the committer touches it.
type IndexState struct {
	*record.VectorIndex // as it is stored; replaced, not written to, as views share it
	collection          uint32

	// Table has the entries and centres, once they are loaded. Nothing changes them before.
	Table   *cells.Writer
	loading *indexLoading // of an index that was found at opening, until it is loaded; nil: nothing to load
	left    bool          // it is not complete, and no training is at it: it is dropped

	Stale sharedBitmap // rows below Covered whose entry is out of date

	// Changed collects the rows that were written since rows are being taken in or a cell is
	// being split. Nil while neither goes on.
	Changed *roaring.Bitmap
}

// An IndexView is the state of an index of vectors as readers see it, which is immutable.
type IndexView struct {
	*record.VectorIndex
	Table   *cells.Table // nil until it is loaded
	Stale   *roaring.Bitmap
	loading *indexLoading
	left    bool
}

// An indexLoading is the loading of one index after opening.
type indexLoading struct {
	*Loading
	table *cells.Table // as it has been loaded; set before the loading ends
}

// newIndexState returns the state of an index whose entries are not loaded.
func newIndexState(collection uint32, x *record.VectorIndex) *IndexState {
	return &IndexState{VectorIndex: x, collection: collection, Stale: sharedBitmap{B: roaring.New()}}
}

// loadIndexes reads the descriptors of the indexes of the collection, and what is stale, but no
// entries.
func (s *CollectionState) loadIndexes(r pebble.Reader) error {
	return record.ForEach(r, codec.CollectionKey(codec.KindIndex, s.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		d, err := record.DecodeIndex(value, s.Descriptor, id)
		if err != nil {
			return fault.Corrupt(err, "descriptor of index %d of collection %q", id, s.Name)
		}
		if d.Covered > s.Counters.NextRow {
			return fault.Corrupt(fmt.Errorf("it covers %d rows, the next row is %d", d.Covered, s.Counters.NextRow), "descriptor of index %d of collection %q", id, s.Name)
		}
		x := newIndexState(s.ID, d)
		x.loading, x.left = &indexLoading{Loading: newLoading()}, !d.Complete
		if x.Stale.B, err = d.ReadStale(r, s.ID); err != nil {
			return err
		}
		s.Indexes = append(s.Indexes, x)
		return nil
	})
}

// IndexByID returns the index with a number, nil where there is none.
func (s *CollectionState) IndexByID(id uint32) *IndexState {
	for _, x := range s.Indexes {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// publish returns the index as readers see it.
func (x *IndexState) publish() IndexView {
	v := IndexView{VectorIndex: x.VectorIndex, Stale: x.Stale.publish(), loading: x.loading, left: x.left}
	if x.Table != nil {
		v.Table = x.Table.Publish()
	}
	return v
}

// IndexOf returns the index of the vectors of modality t that searches use, nil where there is none:
// the latest that is complete, if it is of the metric.
func (cv *CollectionView) IndexOf(t int, metric record.Metric) *IndexView {
	for i := len(cv.Indexes) - 1; i >= 0; i-- {
		if x := &cv.Indexes[i]; x.Modality == t && x.Complete && x.Metric.OrCosine() == metric {
			return x
		}
	}
	return nil
}

// IndexNumber returns the index with a number, nil where there is none.
func (cv *CollectionView) IndexNumber(id uint32) *IndexView {
	for i := range cv.Indexes {
		if cv.Indexes[i].ID == id {
			return &cv.Indexes[i]
		}
	}
	return nil
}

// Loaded returns the entries of the index. After an opening it waits until they have been read:
// until then they stay as they were, as nothing is taken in.
func (x *IndexView) Loaded(ctx context.Context) (*cells.Table, error) {
	if x.Table != nil {
		return x.Table, nil
	}
	if err := x.loading.wait(ctx); err != nil {
		return nil, err
	}
	return x.loading.table, nil
}

// changedRow tells the indexes of a collection that the vector of modality t of a row is written, or
// goes: its entry is out of date.
func (tx *Tx) changedRow(s *CollectionState, row uint32, t int) {
	for _, x := range s.Indexes {
		if x.Modality != t {
			continue
		}
		if x.Changed != nil {
			x.Changed.Add(row)
		}
		if uint64(row) < x.Covered && !x.Stale.B.Contains(row) {
			tx.setStale(x, row, true)
		}
	}
}

// setStale says whether the entry of a row is out of date.
func (tx *Tx) setStale(x *IndexState, row uint32, stale bool) {
	if x.Stale.B.Contains(row) == stale {
		return
	}
	l := tx.layer(codec.ChunkKey(codec.KindStale, x.collection, x.ID, row>>16))
	if stale {
		x.Stale.Edit().Add(row)
		l.Add(uint16(row))
	} else {
		x.Stale.Edit().Remove(row)
		l.Delete(uint16(row))
	}
}

// writeIndex stores the descriptor of an index, which becomes that of its state.
func (tx *Tx) writeIndex(x *IndexState, d *record.VectorIndex) error {
	b, err := d.Encode()
	if err != nil {
		return err
	}
	x.VectorIndex = d
	return tx.Batch.Set(codec.NumberKey(codec.KindIndex, x.collection, d.ID), b, nil)
}

// writeCentre stores the centre of a cell; nil deletes it.
func (tx *Tx) writeCentre(x *IndexState, cell uint32, centre []float32) error {
	key := codec.ChunkKey(codec.KindCentre, x.collection, x.ID, cell)
	if centre == nil {
		return tx.Batch.Delete(key, nil)
	}
	return tx.Batch.Set(key, record.AppendCentre(nil, cell, centre), nil)
}

// setEntry makes e the entry of a row, in memory and in the store; nil: none.
func (tx *Tx) setEntry(x *IndexState, row uint32, e *cells.Entry) {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= x.Covered // no row of it has ever had one
	edit := tx.Block(codec.ChunkKey(codec.KindEntries, x.collection, x.ID, block), cells.EntryBytes(x.Dim), fresh)
	if e == nil {
		if _, has := x.Table.Table().Cell(row); has {
			edit.Clear(byte(row))
			x.Table.Remove(row)
		}
		return
	}
	edit.Set(byte(row), e.Append(nil))
	x.Table.Put(row, e)
}

// FoundIndex stores a new index of the vectors of a modality, without entries and not complete. The
// caller fills in all of d but its number. While another one of the modality is being made it is an
// ErrBusy; what an earlier training has left is dropped.
func (tx *Tx) FoundIndex(s *CollectionState, d *record.VectorIndex, centres *cells.Centres) (*IndexState, error) {
	if s.Descriptor.Indexes == record.MaxRows {
		return nil, fmt.Errorf("%w: indexes of collection %q", fault.ErrFull, s.Name)
	}
	for _, other := range slices.Clone(s.Indexes) {
		switch {
		case other.Complete || other.Modality != d.Modality:
		case !other.left:
			return nil, fmt.Errorf("%w: an index of the vectors of modality %q of collection %q is being made: wait until it is complete", fault.ErrBusy, s.Modalities[d.Modality].Name, s.Name)
		default:
			if err := tx.DropIndex(s, other); err != nil {
				return nil, err
			}
		}
	}
	with := s.Descriptor.WithIndex()
	if err := tx.AlterCollection(s, with); err != nil {
		return nil, err
	}
	d.ID = with.Indexes
	x := newIndexState(s.ID, d)
	x.Table = cells.NewWriter(centres)
	if err := tx.writeIndex(x, d); err != nil {
		return nil, err
	}
	for i := range centres.Numbers() {
		if c := centres.Of(uint32(i)); c != nil {
			if err := tx.writeCentre(x, uint32(i), c); err != nil {
				return nil, err
			}
		}
	}
	s.Indexes = append(s.Indexes, x)
	return x, nil
}

// CompleteIndex lets searches use an index, as d describes it, and drops those before it of its
// modality.
func (tx *Tx) CompleteIndex(s *CollectionState, x *IndexState, d *record.VectorIndex) error {
	if err := tx.writeIndex(x, d); err != nil {
		return err
	}
	for _, other := range slices.Clone(s.Indexes) {
		if other != x && other.Modality == x.Modality {
			if err := tx.DropIndex(s, other); err != nil {
				return err
			}
		}
	}
	tx.Committer.Touch(s)
	return nil
}

// DropIndex deletes an index.
func (tx *Tx) DropIndex(s *CollectionState, x *IndexState) error {
	for _, kind := range []byte{codec.KindIndex, codec.KindCentre, codec.KindEntries, codec.KindStale} {
		prefix := codec.NumberKey(kind, s.ID, x.ID)
		if err := tx.Batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
		maps.DeleteFunc(tx.Committer.edits, func(key string, _ int) bool { return strings.HasPrefix(key, string(prefix)) })
	}
	s.Indexes = slices.DeleteFunc(slices.Clone(s.Indexes), func(o *IndexState) bool { return o == x })
	tx.Committer.Touch(s)
	return nil
}

// readEntries reads the entries of an index of a collection.
func readEntries(ctx context.Context, r pebble.Reader, collection uint32, x *record.VectorIndex) (*cells.Writer, error) {
	centres, err := x.ReadCentres(r, collection)
	if err != nil {
		return nil, err
	}
	w := cells.NewWriter(centres)
	err = x.EachEntry(r, collection, centres, func(row uint32, e cells.Entry) error {
		w.Put(row, &e)
		if row%codec.BlockRows == 0 {
			return ctx.Err()
		}
		return nil
	})
	return w, err
}

// loadFewEntries loads those indexes of a collection that cover at most LoadAtOnce rows. One that is
// damaged is left to Load, which tells.
func (s *CollectionState) loadFewEntries(r pebble.Reader) {
	for _, x := range s.Indexes {
		if x.Covered <= LoadAtOnce && x.Complete {
			if w, err := readEntries(context.Background(), r, s.ID, x.VectorIndex); err == nil {
				x.Table, x.loading = w, nil
			}
		}
	}
}

// loadIndex brings the entries of an index of a view, which has none, into memory.
func (d *Database) loadIndex(ctx context.Context, v *View, cv *CollectionView, xv *IndexView) {
	octx, op := d.Signals.BeginInBackground(ctx, event.OpLoad, cv.Name)
	var w *cells.Writer
	err := work.Safely(func() (err error) {
		w, err = readEntries(octx, v.Snap, cv.ID, xv.VectorIndex)
		return err
	})
	if err == nil {
		err = d.Committer.Show(octx, func() error {
			xv.loading.table = w.Publish()                // also where it is dropped: views before that wait for it
			if s := d.Committer.States[cv.ID]; s != nil { // neither may be there any more
				if x := s.IndexByID(xv.ID); x != nil {
					x.Table, x.loading = w, nil
					d.Committer.Touch(s)
				}
			}
			return nil
		})
	}
	e := event.Event{Attrs: []slog.Attr{slog.Int("index", int(xv.ID))}}
	if w != nil {
		e.Items = int64(w.Table().Rows())
	}
	op.End(err, e)
	switch {
	case err == nil:
		close(xv.loading.done)
	case ctx.Err() != nil:
		notLoaded(xv.loading.Loading, fault.ErrClosed)
	default:
		notLoaded(xv.loading.Loading, err)
	}
}

// loadIndexes loads all indexes of a view.
func (d *Database) loadIndexes(ctx context.Context, v *View) {
	for cv := range v.Collections.Values() {
		for i := range cv.Indexes {
			if x := &cv.Indexes[i]; x.loading != nil && x.Table == nil && !x.loading.ended() {
				d.loadIndex(ctx, v, cv, x)
			}
		}
	}
}

// change changes an index. make prepares that, from a view of it. It returns what is to be done in one
// commit then, nil for nothing, and how many entries that writes; it leaves out rows that have changed
// since the view (Changed). The caller sees to it that there is one change at a time of an index. An index that is not there, or not
// loaded, or whose centres have changed, stays as it is. done says whether it has been changed.
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

// readFold makes the entries of the rows that are to be taken in next; nil if there are none.
func (x *IndexView) readFold(ctx context.Context, r pebble.Reader, cv *CollectionView, workers, limit int) (*fold, error) {
	f := &fold{until: x.Covered}
	m := cv.Modalities[x.Modality]
	having := roaring.And(cv.Live, cv.Presence[x.Modality])
	var vectors [][]float32
	take := func(row uint32, value []byte) error {
		f.rows = append(f.rows, row)
		if value == nil {
			vectors = append(vectors, nil)
			return nil
		}
		var v model.Vector
		if err := m.DecodeVector(&v, value); err != nil {
			return fault.Corrupt(err, "features %q of row %d", m.Name, row)
		}
		vectors = append(vectors, v.Value)
		return ctx.Err()
	}
	for it := x.Stale.Iterator(); it.HasNext() && len(f.rows) < limit; {
		row := it.Next()
		var value []byte
		if having.Contains(row) {
			var err error
			if value, err = record.Get(r, codec.FeatureKey(cv.ID, row, uint16(x.Modality))); err != nil {
				return nil, fault.ReadError(err, "features %q of row %d", m.Name, row)
			}
		}
		if err := take(row, value); err != nil {
			return nil, err
		}
	}
	if room := limit - len(f.rows); room > 0 && x.Covered < cv.NextRow {
		f.until = min(cv.NextRow, x.Covered+uint64(room))
		lo, hi := codec.FeatureKey(cv.ID, uint32(x.Covered), 0), codec.FeatureKey(cv.ID, uint32(f.until), 0)
		err := record.ForEachIn(r, lo, hi, func(key, value []byte) error {
			row, t := codec.FeatureKeyParts(key)
			if int(t) != x.Modality || !having.Contains(row) {
				return nil
			}
			return take(row, value)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(f.rows) == 0 && f.until == x.Covered {
		return nil, nil
	}
	c := x.Table.Centres()
	placed := make([][]float32, len(vectors))
	err := work.ParallelBy(ctx, workers, 64, len(vectors), func(i int) error {
		if vectors[i] != nil {
			placed[i] = make([]float32, c.Size())
			c.Place(placed[i], vectors[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.entries, err = encodePlaced(ctx, c, placed, workers)
	return f, err
}

// foldAfter is how many rows an index may be behind: a search compares them all, which takes some 20
// microseconds. foldRows is how many are taken in by one commit.
const (
	foldAfter = 512
	foldRows  = 4096
)

// keepDue reports whether an index of a collection has fallen behind, or is left over from a training
// that has not ended.
func (d *Database) keepDue(cv *CollectionView) bool {
	if d.Committer.readOnly {
		return false
	}
	for i := range cv.Indexes {
		x := &cv.Indexes[i]
		if x.left || x.Complete && x.Table != nil && x.Unfolded(cv.NextRow) >= foldAfter {
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
			case x.Complete && x.Table != nil && x.Unfolded(cv.NextRow) >= foldAfter:
				_, op := d.Signals.BeginUntraced(ctx, event.OpIndex, cv.Name)
				left, err := d.FoldIndex(ctx, cv.ID, x.ID, work.Background(), foldRows)
				for tended := left < foldAfter; tended && err == nil; {
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

// Report describes the index.
func (x *IndexView) Report(cv *CollectionView) *report.VectorIndex {
	out := &report.VectorIndex{
		Index: int(x.ID), Modality: cv.Modalities[x.Modality].Name, Complete: x.Complete,
		Unknown: x.Unfolded(cv.NextRow), Recall: x.Recall,
	}
	out.Created, _ = time.Parse(time.RFC3339, x.Created) // zero if it is none
	for _, p := range x.Curve {
		out.Measured = append(out.Measured, report.RecallPoint(p))
	}
	if r := x.VectorIndex.Report; r != nil {
		out.Queries, out.Of, out.Sample, out.Seconds = r.Queries, r.Items, r.Sample, r.Seconds
	}
	if t := x.Table; t != nil {
		out.Cells, out.Entries, out.Bytes = t.Centres().Count(), t.Rows(), t.Bytes()
		for i := range t.Centres().Numbers() {
			out.Largest = max(out.Largest, t.Len(uint32(i)))
		}
	}
	return out
}

// Measured reports whether what was measured of the index holds: it has less than twice as many
// entries as it had then, and more than half.
func (x *IndexView) Measured() bool { return x.MeasuredOf(x.Table) }

// MeasuredOf is Measured for the entries that Loaded has returned.
func (x *IndexView) MeasuredOf(t *cells.Table) bool {
	n, then := t.Rows(), x.VectorIndex.Report.Items
	return n < 2*max(then, leastMeasured) && then < 2*max(n, leastMeasured)
}

// leastMeasured is a number of entries below which nothing is measured again: so few are all compared.
const leastMeasured = 256

// Behind reports whether rows are about to be taken in.
func (x *IndexView) Behind(nextRow uint64) bool { return x.Unfolded(nextRow) >= foldAfter }

// MeasureIndex stores what has been measured of an index, if that is there.
func (tx *Tx) MeasureIndex(s *CollectionState, id uint32, curve []record.RecallAt, r record.IndexReport) error {
	x := s.IndexByID(id)
	if x == nil {
		tx.Empty = true
		return nil
	}
	next, report := *x.VectorIndex, *x.VectorIndex.Report
	report.Queries, report.Items = r.Queries, r.Items
	next.Curve, next.Report = curve, &report
	tx.Committer.Touch(s)
	return tx.writeIndex(x, &next)
}

// LeaveIndex says that no training is at an index any more that is not complete. The indexer drops it.
func (s *CollectionState) LeaveIndex(id uint32) {
	if x := s.IndexByID(id); x != nil && !x.Complete {
		x.left = true
	}
}
