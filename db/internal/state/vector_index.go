package state

import (
	"context"
	"errors"
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
)

// An index of vectors lags behind the items, and records by how much: it covers the rows below a row, except
// the stale ones, and searches compare the vectors of all other rows. So a write at most marks a row as
// stale. Rows enter the index many at a time, first by a training and then by the indexer. Entries of deleted
// items stay until then, as searches check whether a row is live.

// An IndexState is the committer's state of an index of vectors. Only the committer touches it.
type IndexState struct {
	*record.VectorIndex // as stored; views share it, so it is replaced, not written to
	collection          uint32

	// Table has the entries and centres once they are loaded. Nothing changes them before.
	Table   *cells.Writer
	loading *indexLoading // of an index found at opening, until it is loaded; nil: nothing to load
	left    bool          // it is incomplete and no training works on it: it is dropped

	Stale sharedBitmap // rows below Covered whose entry is out of date
	Loose sharedBitmap // stale rows that fit no cell; not stored, but found again after an opening

	// Changed collects the rows written since the making of the index, or the present merge of rows, began.
	// Nil while neither runs.
	Changed *roaring.Bitmap

	until uint64 // of an index being made: the rows below it existed when its cells were found
}

// An IndexView is the immutable state of an index of vectors that readers see.
type IndexView struct {
	*record.VectorIndex
	Table   *cells.Table // nil until it is loaded
	Stale   *roaring.Bitmap
	Loose   *roaring.Bitmap
	loading *indexLoading
	left    bool
	until   uint64
}

// newIndexState returns the state of an index whose entries are not loaded.
func newIndexState(collection uint32, x *record.VectorIndex) *IndexState {
	return &IndexState{VectorIndex: x, collection: collection, Stale: sharedBitmap{B: roaring.New()},
		Loose: sharedBitmap{B: roaring.New()}}
}

// IndexByID returns the index with a number, nil if there is none.
func (s *CollectionState) IndexByID(id uint32) *IndexState {
	for _, x := range s.Indexes {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// publish returns the view of the index.
func (x *IndexState) publish() IndexView {
	v := IndexView{VectorIndex: x.VectorIndex, Stale: x.Stale.publish(), Loose: x.Loose.publish(),
		loading: x.loading, left: x.left, until: x.until}
	if x.Table != nil {
		v.Table = x.Table.Publish()
	}
	return v
}

// IndexOf returns the index that searches of modality t use: the latest complete one, if it has the metric.
// It returns nil if there is none.
func (cv *CollectionView) IndexOf(t int, metric record.Metric) *IndexView {
	for i := len(cv.Indexes) - 1; i >= 0; i-- {
		if x := &cv.Indexes[i]; x.Modality == t && x.Complete && x.Metric.OrCosine() == metric {
			return x
		}
	}
	return nil
}

// IndexNumber returns the index with a number, nil if there is none.
func (cv *CollectionView) IndexNumber(id uint32) *IndexView {
	for i := range cv.Indexes {
		if cv.Indexes[i].ID == id {
			return &cv.Indexes[i]
		}
	}
	return nil
}

// changedRow tells the indexes of a collection that the vector of modality t of a row changes or goes: its
// entry is out of date.
func (tx *Tx) changedRow(s *CollectionState, row uint32, t int) {
	for _, x := range s.Indexes {
		if x.Modality != t {
			continue
		}
		if x.Changed != nil {
			x.Changed.Add(row)
		}
		if x.Loose.B.Contains(row) {
			x.Loose.Edit().Remove(row)
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

// writeIndex stores d as the descriptor of an index, also in its state.
func (tx *Tx) writeIndex(x *IndexState, d *record.VectorIndex) error {
	b, err := d.Encode()
	if err != nil {
		return err
	}
	x.VectorIndex = d
	return tx.Batch.Set(codec.NumberKey(codec.KindIndex, x.collection, d.ID), b, nil)
}

// writeCell stores a cell.
func (tx *Tx) writeCell(x *IndexState, cell uint32, c cells.Cell) error {
	return tx.Batch.Set(codec.ChunkKey(codec.KindCentre, x.collection, x.ID, cell),
		record.AppendCell(nil, cell, c), nil)
}

// setEntry sets the entry of a row, in memory and in the store; nil removes it.
func (tx *Tx) setEntry(x *IndexState, row uint32, e *cells.Entry) {
	block := row / codec.BlockRows
	fresh := uint64(block)*codec.BlockRows >= x.Covered // no row of the block has ever had one
	edit := tx.Block(codec.ChunkKey(codec.KindEntries, x.collection, x.ID, block), cells.EntryBytes(x.Dim),
		fresh)
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

// AddIndex stores a new, incomplete index of a modality without cells, and begins to record changed rows.
// The caller fills in all of d but its number. If another index of the modality is being made, it is an
// ErrBusy; a leftover of an earlier training is dropped.
func (tx *Tx) AddIndex(s *CollectionState, d *record.VectorIndex) (*IndexState, error) {
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
	x.Table, x.Changed = cells.NewWriter(cells.NewCentres(d.Geometry(), nil)), roaring.New()
	if err := tx.writeIndex(x, d); err != nil {
		return nil, err
	}
	s.Indexes = append(s.Indexes, x)
	return x, nil
}

// SetCells gives a new index its cells and their report. The cells were found from rows below until. Rows
// that came or changed after AddIndex may be of a kind without a cell, so they wait for TakeIn until the
// index is complete.
func (tx *Tx) SetCells(s *CollectionState, x *IndexState, centres *cells.Centres, until uint64,
	r *record.IndexReport) error {
	d := *x.VectorIndex
	d.Report = r
	x.Table, x.until = cells.NewWriter(centres), until
	for i := range centres.Numbers() {
		if c := centres.Cell(uint32(i)); c.Centre != nil {
			if err := tx.writeCell(x, uint32(i), c); err != nil {
				return err
			}
		}
	}
	tx.Committer.Touch(s)
	return tx.writeIndex(x, &d)
}

// CompleteIndex lets searches use an index, as d describes it, and drops the other indexes of its modality.
func (tx *Tx) CompleteIndex(s *CollectionState, x *IndexState, d *record.VectorIndex) error {
	x.Changed = nil
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
		maps.DeleteFunc(tx.Committer.edits,
			func(key string, _ int) bool { return strings.HasPrefix(key, string(prefix)) })
	}
	s.Indexes = slices.DeleteFunc(slices.Clone(s.Indexes), func(o *IndexState) bool { return o == x })
	tx.Committer.Touch(s)
	return nil
}

// Report describes the index.
func (x *IndexView) Report(cv *CollectionView) *report.VectorIndex {
	out := &report.VectorIndex{
		Index: int(x.ID), Modality: cv.Modalities[x.Modality].Name, Complete: x.Complete,
		Unknown: x.Unmerged(cv.NextRow), Loose: int(x.Loose.GetCardinality()), Recall: x.Recall,
		Outgrown: x.Complete && x.Outgrown(),
	}
	out.Created, _ = time.Parse(time.RFC3339, x.Created) // zero if it does not parse
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
	if l := x.loading; l != nil && l.ended() && errors.Is(l.err, fault.ErrCorrupt) {
		out.Damage = l.err.Error()
	}
	return out
}

// Behind reports whether enough rows wait to be merged.
func (x *IndexView) Behind(nextRow uint64) bool {
	return x.Complete && !x.Outgrown() &&
		x.Unmerged(nextRow)-int(x.Loose.GetCardinality()) >= cells.MergeAfter
}

// Due reports whether to rebuild the index: a quarter of its vectors have come, changed or gone, or so many
// fit no cell that comparing them takes a noticeable part of a search.
func (x *IndexView) Due() bool {
	items := x.VectorIndex.Report.Items
	return x.changes() >= items/4+cells.MergeAfter ||
		int(x.Loose.GetCardinality()) >= items/256+cells.MergeAfter
}

// Outgrown reports whether so many vectors have come, changed or gone that the measured recall no longer
// holds. Searches then compare all vectors, and no rows are merged until the index is rebuilt.
func (x *IndexView) Outgrown() bool {
	return x.changes() >= x.VectorIndex.Report.Items/2+2*cells.MergeAfter
}

// changes returns how many vectors have come, changed or gone since the index was made, among the rows
// it has seen.
func (x *IndexView) changes() int { return x.Churn + int(x.Loose.GetCardinality()) }

// FitIndex fits the cells to their entries (cells.Writer.Fit), after all rows are in, and stores them.
func (tx *Tx) FitIndex(s *CollectionState, x *IndexState) error {
	for cell, c := range x.Table.Fit() {
		if err := tx.writeCell(x, cell, c); err != nil {
			return err
		}
	}
	tx.Committer.Touch(s)
	return nil
}

// LeaveIndex says that no training works on an incomplete index any more. The indexer drops it.
func (s *CollectionState) LeaveIndex(id uint32) {
	if x := s.IndexByID(id); x != nil && !x.Complete {
		x.left = true
	}
}

// Opening a database reads the descriptors of all indexes of vectors, and the entries of small ones. The
// entries of the others are loaded in the background, like codes, and searches wait for them.

// An indexLoading is the loading of one index after opening.
type indexLoading struct {
	*Loading
	table *cells.Table // the loaded table; set before the loading ends
}

// loadIndexes reads the descriptors and the stale rows of the collection's indexes, but no entries.
func (s *CollectionState) loadIndexes(r pebble.Reader) error {
	return record.ForEach(r, codec.CollectionKey(codec.KindIndex, s.ID), func(key, value []byte) error {
		id := codec.LastNumber(key)
		d, err := record.DecodeIndex(value, s.Descriptor, id)
		if err != nil {
			return fault.Corrupt(err, "descriptor of index %d of collection %q", id, s.Name)
		}
		if d.Covered > s.Counters.NextRow {
			return fault.Corrupt(fmt.Errorf("it covers %d rows, the next row is %d", d.Covered,
				s.Counters.NextRow), "descriptor of index %d of collection %q", id, s.Name)
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

// Loaded returns the entries of the index. After an opening it waits until they are loaded; until then no
// rows are merged, so they do not change.
func (x *IndexView) Loaded(ctx context.Context) (*cells.Table, error) {
	if x.Table != nil {
		return x.Table, nil
	}
	if err := x.loading.wait(ctx); err != nil {
		return nil, err
	}
	return x.loading.table, nil
}

// readEntries reads the entries of an index of a collection.
func readEntries(ctx context.Context, r pebble.Reader, collection uint32,
	x *record.VectorIndex) (*cells.Writer, error) {
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
	w.Resume()
	return w, err
}

// loadFewEntries loads the indexes of a collection that cover at most LoadAtOnce rows. It leaves a damaged
// index to Load, which reports it.
func (s *CollectionState) loadFewEntries(r pebble.Reader) {
	for _, x := range s.Indexes {
		if x.Covered <= LoadAtOnce && x.Complete {
			if w, err := readEntries(context.Background(), r, s.ID, x.VectorIndex); err == nil {
				x.Table, x.loading = w, nil
			}
		}
	}
}

// loadIndex loads the entries of an index of a view that lacks them.
func (d *Database) loadIndex(ctx context.Context, v *View, cv *CollectionView, xv *IndexView) {
	op := d.Signals.BeginInBackground(ctx, event.OpLoad, cv.Name)
	var w *cells.Writer
	err := work.Safely(func() (err error) {
		w, err = readEntries(ctx, v.Snap, cv.ID, xv.VectorIndex)
		return err
	})
	if err == nil {
		err = d.Committer.Show(ctx, func() error {
			// also if the index is dropped: views before that wait for it
			xv.loading.table = w.Publish()
			if s := d.Committer.States[cv.ID]; s != nil { // collection and index may have been dropped
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

// LoadIndexes loads the indexes of the present view that are not loaded and cover at most so many rows.
func (d *Database) LoadIndexes(ctx context.Context, most uint64) {
	v := d.Latest()
	defer v.Release()
	for cv := range v.Collections.Values() {
		for i := range cv.Indexes {
			if x := &cv.Indexes[i]; x.Complete && x.Table == nil && x.Covered <= most {
				if x.loading.ended() { // Close has ended it, or the index is damaged
					x.loading.Loading = newLoading()
				}
				d.loadIndex(ctx, v, cv, x)
			}
		}
	}
}
