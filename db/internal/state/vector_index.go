package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/cells"
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
	Loose sharedBitmap // those of them that fit no cell; not stored, but found again after an opening

	// Changed collects the rows that were written since the index is being made, or rows are being taken
	// in. Nil while neither goes on.
	Changed *roaring.Bitmap

	until uint64 // of an index that is being made: the rows below it were there when its cells were found
}

// An IndexView is the state of an index of vectors as readers see it, which is immutable.
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
	return &IndexState{VectorIndex: x, collection: collection, Stale: sharedBitmap{B: roaring.New()}, Loose: sharedBitmap{B: roaring.New()}}
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
	v := IndexView{VectorIndex: x.VectorIndex, Stale: x.Stale.publish(), Loose: x.Loose.publish(), loading: x.loading, left: x.left, until: x.until}
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

// writeIndex stores the descriptor of an index, which becomes that of its state.
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
	return tx.Batch.Set(codec.ChunkKey(codec.KindCentre, x.collection, x.ID, cell), record.AppendCell(nil, cell, c), nil)
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

// FoundIndex stores a new index of the vectors of a modality, without cells and not complete, and begins
// to record which rows change. The caller fills in all of d but its number. While another one of the
// modality is being made it is an ErrBusy; what an earlier training has left is dropped.
func (tx *Tx) FoundIndex(s *CollectionState, d *record.VectorIndex) (*IndexState, error) {
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

// SetCells gives a new index its cells, and what the report says of them. They were found from rows below
// until. Rows that came later or have changed since the index was founded may be of a kind that has no
// cell, so they wait until it is complete, for TakeIn.
func (tx *Tx) SetCells(s *CollectionState, x *IndexState, centres *cells.Centres, until uint64, r *record.IndexReport) error {
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

// CompleteIndex lets searches use an index, as d describes it, and drops those before it of its
// modality.
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
		maps.DeleteFunc(tx.Committer.edits, func(key string, _ int) bool { return strings.HasPrefix(key, string(prefix)) })
	}
	s.Indexes = slices.DeleteFunc(slices.Clone(s.Indexes), func(o *IndexState) bool { return o == x })
	tx.Committer.Touch(s)
	return nil
}

// Report describes the index.
func (x *IndexView) Report(cv *CollectionView) *report.VectorIndex {
	out := &report.VectorIndex{
		Index: int(x.ID), Modality: cv.Modalities[x.Modality].Name, Complete: x.Complete,
		Unknown: x.Unfolded(cv.NextRow), Loose: int(x.Loose.GetCardinality()), Recall: x.Recall,
		Outgrown: x.Complete && x.Outgrown(),
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
	if l := x.loading; l != nil && l.ended() && errors.Is(l.err, fault.ErrCorrupt) {
		out.Damage = l.err.Error()
	}
	return out
}

// Behind reports whether rows are about to be taken in.
func (x *IndexView) Behind(nextRow uint64) bool {
	return x.Complete && !x.Outgrown() && x.Unfolded(nextRow)-int(x.Loose.GetCardinality()) >= cells.FoldAfter
}

// Due reports whether the index is to be made anew: a quarter of its vectors have come, changed or gone,
// or so many fit no cell that comparing them takes a part of the time of a search.
func (x *IndexView) Due() bool {
	items := x.VectorIndex.Report.Items
	return x.changes() >= items/4+cells.FoldAfter || int(x.Loose.GetCardinality()) >= items/256+cells.FoldAfter
}

// Outgrown reports whether so much has come, changed or gone that what was measured says nothing any more:
// searches compare all vectors, and nothing is taken in until the index has been made anew.
func (x *IndexView) Outgrown() bool {
	return x.changes() >= x.VectorIndex.Report.Items/2+2*cells.FoldAfter
}

// changes returns how many vectors have come, changed or gone since the index was made, as far as it has
// looked at them.
func (x *IndexView) changes() int { return x.Churn + int(x.Loose.GetCardinality()) }

// FitIndex finds out what the cells of an index promise, when it has taken in all rows, and stores it.
func (tx *Tx) FitIndex(s *CollectionState, x *IndexState) error {
	for cell, c := range x.Table.Fit() {
		if err := tx.writeCell(x, cell, c); err != nil {
			return err
		}
	}
	tx.Committer.Touch(s)
	return nil
}

// LeaveIndex says that no training is at an index any more that is not complete. The indexer drops it.
func (s *CollectionState) LeaveIndex(id uint32) {
	if x := s.IndexByID(id); x != nil && !x.Complete {
		x.left = true
	}
}
