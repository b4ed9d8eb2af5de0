package state

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/model"
)

// Rows for reranking are in memory at 8 bits a dimension: the projection directions of each space, and the
// vectors of modalities that a search has compared (Wants). Each write updates them, and views share them.
// They are loaded in the background, from the first row on, as far as the memory goes
// (Options.RerankCacheBytes): first directions of active spaces, then directions of standby spaces, and
// vectors. A space that is being built has none. Rows from quant.Table.Covered on are read from the store. So
// no search waits for them, and only time depends on them.

// QuantRows are the committer's rows for reranking. The Writer is nil if there can be none, or no search has
// asked for them.
type QuantRows struct {
	*quant.Writer
	unreadable bool // the other rows could not be read; do not retry
}

// QuantView are the rows that readers see. The Table is nil if there are none.
type QuantView struct {
	*quant.Table
	unreadable bool // of QuantRows
}

// publish returns the view of the rows.
func (r *QuantRows) publish() QuantView {
	if r.Writer == nil {
		return QuantView{}
	}
	return QuantView{r.Publish(), r.unreadable}
}

// Bytes returns the memory of the rows in bytes.
func (v QuantView) Bytes() int {
	if v.Table == nil {
		return 0
	}
	return v.Table.Bytes()
}

// Rows returns the first row that has to be read from the store.
func (v QuantView) Rows() uint32 {
	if v.Table == nil {
		return 0
	}
	return v.Covered()
}

// put sets the entry of a row; nil removes it.
func (r *QuantRows) put(row uint32, b []byte) {
	if r.Writer != nil {
		r.Put(row, b)
	}
}

// extend extends rows that cover all rows below before up to after: a commit has written the rows between, or
// made none of them. If memory has run out, they end at before.
func (r *QuantRows) extend(before, after uint64, affordable bool) {
	switch {
	case r.Writer == nil || !r.IsOpen():
	case uint64(r.Covered()) < before: // a part is being loaded; it is given up if too much changes meanwhile
		if r.Touched() > maxTouched {
			r.Close()
		}
	case affordable:
		r.Cover(uint32(after))
	default:
		r.Close()
	}
}

// forget drops the rows from row on from memory.
func (r *QuantRows) forget(row uint32) {
	if r.Writer != nil {
		r.Forget(row)
	}
}

// putVector updates the vector of modality t of a row in memory, if the modality has any there.
func (s *CollectionState) putVector(t int, row uint32, x model.Vector) {
	switch {
	case s.Vectors[t].Writer == nil:
	case x.Present():
		s.Vectors[t].Put(row, quant.AppendVector(nil, x.Value))
	default:
		s.Vectors[t].Put(row, nil)
	}
}

// ForgetDirections drops the directions from row on from memory. Code that stores only projections of the
// space, without a Tx, calls it for its first row.
func (s *SpaceState) ForgetDirections(row uint32) { s.Directions.forget(row) }

// ForgetFrom drops the rows from row on from memory, after they were stored without a Tx. The indexer loads
// them.
func (s *CollectionState) ForgetFrom(row uint32) {
	for _, sp := range s.Spaces {
		sp.Directions.forget(row)
	}
	for t := range s.Vectors {
		s.Vectors[t].forget(row)
	}
}

// extendRows tells all rows for reranking that a commit has written the rows below after.
func (s *CollectionState) extendRows(before, after uint64, affordable bool) {
	for _, sp := range s.Spaces {
		sp.Directions.extend(before, after, affordable)
	}
	for t := range s.Vectors {
		s.Vectors[t].extend(before, after, affordable)
	}
}

// rerankFits reports whether the rows in memory, as of the last view, are within the bound.
func (c *Committer) rerankFits() bool {
	return int64(c.shown.Rerank.all) <= c.rerankBytes
}

// Wants records the modalities whose vectors searches want in memory. Safe for concurrent use.
type Wants [record.MaxModalities]atomic.Bool

// WantVectors records that a search would be faster with the vectors of modality t in memory. It reports
// whether that is new: then the caller calls Database.WantRerank.
func (cv *CollectionView) WantVectors(t int) bool {
	return cv.KeepsVectors(t) && !cv.wants[t].Load() && !cv.wants[t].Swap(true)
}

// KeepsVectors reports whether vectors of modality t can be in memory at 8 bits.
func (cv *CollectionView) KeepsVectors(t int) bool {
	m := cv.Modalities[t]
	return !m.Sparse && !cv.IndexOnly && m.Dim <= quant.MaxDims
}

// WantRerank asks the indexer to load rows, or to make cells.
func (d *Database) WantRerank() { d.wantIndex() }

// A rerankStep is the next step for some rows in memory: load the rows up to a row, or drop the rows from it
// on.
type rerankStep struct {
	collection uint32
	space      uint32 // of directions; 0: vectors
	modality   int    // of vectors
	to         uint32
	forget     bool
	bytes      int64 // bytes of the rows at most
}

// Rows are loaded in parts of at most maxPart bytes, and at least minPart rows: smaller parts do not pay.
const (
	minPart = 256
	maxPart = 4 << 20
)

// maxTouched bounds the rows that are written while a part is being loaded, which takes some
// milliseconds.
const maxTouched = 1 << 13

// reserve is the memory for rows that loading leaves free. New writes use it, and dropping rows restores it,
// so loading and dropping do not alternate.
func (d *Database) reserve() int64 { return min(maxPart, d.rerankBytes/8) }

// rerankDue reports whether rows of a collection are to be loaded or dropped.
func (d *Database) rerankDue(v *View, cv *CollectionView) bool {
	if int64(v.Rerank.all) > max(d.rerankBytes, 0) {
		return true
	}
	for i := range cv.Spaces {
		if _, due := d.loadDue(v, cv, &cv.Spaces[i], 0); due {
			return true
		}
	}
	for t := range cv.Modalities {
		if _, due := d.loadDue(v, cv, nil, t); due {
			return true
		}
	}
	return false
}

// loadDue returns the next directions of a space to load or, if sp is nil, the next vectors of modality t.
// due is false if there are none, or none fit. Directions of active spaces may displace other rows.
func (d *Database) loadDue(v *View, cv *CollectionView, sp *SpaceView, t int) (step rerankStep, due bool) {
	room := d.rerankBytes - d.reserve() - int64(v.Rerank.all)
	var rows QuantView
	dims := 0
	switch {
	case sp == nil:
		if !cv.wants[t].Load() {
			return step, false
		}
		step, rows, dims = rerankStep{collection: cv.ID, modality: t}, cv.Vectors[t],
			quant.VectorBytes(cv.Modalities[t].Dim)
	case sp.Directions.Table == nil || sp.Numbers.Building:
		return step, false
	default:
		step, rows, dims = rerankStep{collection: cv.ID, space: sp.Space.ID}, sp.Directions, sp.Space.Bits
		if sp.Space.ID == cv.Active {
			room = d.rerankBytes - d.reserve() - int64(v.Rerank.active)
		}
	}
	left := int64(cv.NextRow) - int64(rows.Rows())
	if rows.unreadable || left <= 0 || room <= 0 {
		return step, false
	}
	n := min(left, max(maxPart/int64(dims), minPart))
	if step.bytes = int64(quant.BytesOf(int(n), dims)); step.bytes > room {
		n = room * n / step.bytes / 2 // half of them fit for certain, whatever their pages take
		step.bytes = int64(quant.BytesOf(int(n), dims))
	}
	if n < minPart && n < left || step.bytes > room {
		return step, false
	}
	step.to = rows.Rows() + uint32(n)
	return step, true
}

// nextRerank returns the most urgent step. First it frees memory, if too much is used or an active space
// needs it; then come directions of active spaces, directions of other spaces, and vectors.
func (d *Database) nextRerank() (step rerankStep, due bool) {
	v := d.Latest()
	defer v.Release()
	room := d.rerankBytes - int64(v.Rerank.all)
	if room < 0 {
		if step, due = giveBack(v, d.reserve()-room, false); due {
			return step, true
		}
		if step, due = giveBack(v, d.reserve()-room, true); due { // rows without vectors have got some
			return step, true
		}
	}
	for set, cv := range v.CodeSets() {
		if step, due = d.loadDue(v, cv, cv.SpaceNumber(set.Space), 0); due {
			if missing := step.bytes + d.reserve() - room; missing > 0 {
				if first, due := giveBack(v, missing, false); due {
					return first, true
				}
			}
			return step, true
		}
	}
	for cv := range v.Collections.Values() {
		for t := range cv.Modalities {
			if step, due = d.loadDue(v, cv, nil, t); due {
				return step, true
			}
		}
	}
	return step, false
}

// giveBack returns a step that frees so many bytes, or as many as one set of rows takes, from the largest
// set: among directions of active spaces, or among all others.
func giveBack(v *View, bytes int64, active bool) (step rerankStep, due bool) {
	most := 0
	consider := func(s rerankStep, rows QuantView) {
		if n := rows.Bytes(); n > most {
			most, due, step = n, true, s
			step.forget = true
			step.to = uint32(int64(rows.Rows()) * max(int64(n)-bytes, 0) / int64(n) / 64 * 64)
		}
	}
	for cv := range v.Collections.Values() {
		for i := range cv.Spaces {
			if sp := &cv.Spaces[i]; (sp.Space.ID == cv.Active) == active {
				consider(rerankStep{collection: cv.ID, space: sp.Space.ID}, sp.Directions)
			}
		}
		for t, rows := range cv.Vectors {
			if active {
				break
			}
			consider(rerankStep{collection: cv.ID, modality: t}, rows)
		}
	}
	return step, due
}

// rows returns the committer's rows for the step, nil if they no longer exist.
func (s *rerankStep) rows(of *CollectionState) *QuantRows {
	if s.space == 0 {
		return &of.Vectors[s.modality]
	}
	if sp := of.SpaceByID(s.space); sp != nil {
		return &sp.Directions
	}
	return nil
}

// loadRerank does one step and reports whether there was one: then there may be another. An event reports
// rows that cannot be read; the rows in memory end there until the database is reopened.
func (d *Database) loadRerank(ctx context.Context) bool {
	d.indexing.Lock() // parts follow each other
	defer d.indexing.Unlock()
	step, due := d.nextRerank()
	if !due {
		return false
	}
	show := func(f func(s *CollectionState, rows *QuantRows)) error {
		return d.Committer.Show(ctx, func() error {
			// collection and space may have been dropped
			if s := d.Committer.States[step.collection]; s != nil {
				if rows := step.rows(s); rows != nil {
					f(s, rows)
					d.Committer.Touch(s)
				}
			}
			return nil
		})
	}
	if step.forget {
		return show(func(_ *CollectionState, rows *QuantRows) { rows.forget(step.to) }) == nil
	}
	err := show(func(s *CollectionState, rows *QuantRows) {
		if rows.Writer == nil {
			rows.Writer = quant.NewWriter(quant.VectorBytes(s.Modalities[step.modality].Dim))
		}
		rows.Open()
	})
	if err != nil {
		return false
	}
	// The rows in memory follow every write after this view.
	v := d.Latest()
	defer v.Release()
	cv, found := v.Collections.Get(step.collection)
	if !found {
		return true
	}
	op := d.Signals.BeginInBackground(ctx, event.OpRerank, cv.Name)
	end := min(uint64(step.to), cv.NextRow)
	from := uint32(0)
	var part *quant.Part
	err = work.Safely(func() (err error) {
		from, part, err = step.read(ctx, v.Snap, cv, uint32(end))
		return err
	})
	shown := show(func(s *CollectionState, rows *QuantRows) {
		switch {
		case err != nil:
			rows.unreadable = ctx.Err() == nil
			rows.Close()
		case part != nil:
			rows.Install(part, uint32(end))
			if end == cv.NextRow { // the rows have followed all later writes
				rows.extend(end, s.Counters.NextRow, true)
			}
			if uint64(rows.Covered()) < s.Counters.NextRow { // the next step takes its own view
				rows.Close()
			}
		}
	})
	done := event.Event{Level: slog.LevelDebug, Space: step.space, Items: max(0, int64(end)-int64(from))}
	op.End(fault.Annotate(err, "vectors to put hits in order, collection %q", cv.Name), done)
	return shown == nil // unreadable rows are not retried
}

// read reads the rows between those in memory and end, in a view of the collection. The part is nil if the
// space has been dropped.
func (s *rerankStep) read(ctx context.Context, r pebble.Reader, cv *CollectionView,
	end uint32) (from uint32, part *quant.Part, err error) {
	looked := 0
	look := func() error {
		if looked++; looked%256 == 0 {
			return ctx.Err()
		}
		return nil
	}
	if s.space == 0 {
		from, part, err = s.readVectors(r, cv, end, look)
		return from, part, err
	}
	sp := cv.SpaceNumber(s.space)
	if sp == nil {
		return 0, nil, nil
	}
	width := sp.Space.ProjectionBytes()
	from = sp.Directions.Rows()
	k := sp.Space.Keys(cv.ID)
	part = quant.NewPart(sp.Space.Bits, from)
	lo, hi := k.Block(codec.KindProjection, from), codec.PrefixEnd(k.Block(codec.KindProjection, end-1))
	err = record.ForEachEntryIn(r, lo, hi, func(row uint32, entry []byte) error {
		if len(entry) != width {
			return fault.Corrupt(fmt.Errorf("%d bytes, not %d", len(entry), width), "projection of row %d",
				row)
		}
		if row >= from && row < end {
			part.Append(row, codec.Direction(entry))
		}
		return look()
	})
	return from, part, err
}

// readVectors is read for vectors.
func (s *rerankStep) readVectors(r pebble.Reader, cv *CollectionView, end uint32,
	look func() error) (from uint32, part *quant.Part, err error) {
	m := cv.Modalities[s.modality]
	from = cv.Vectors[s.modality].Rows()
	part = quant.NewPart(quant.VectorBytes(m.Dim), from)
	var x model.Vector
	var b []byte
	lo, hi := codec.FeatureKey(cv.ID, from, 0), codec.FeatureKey(cv.ID, end, 0)
	err = record.ForEachIn(r, lo, hi, func(key, value []byte) error {
		row, t := codec.FeatureKeyParts(key)
		if int(t) != s.modality {
			return look()
		}
		if err := m.DecodeVector(&x, value); err != nil {
			return fault.Corrupt(err, "features %d of row %d", t, row)
		}
		b = quant.AppendVector(b[:0], x.Value)
		part.Append(row, b)
		return look()
	})
	return from, part, err
}
