package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/cells"
)

// An index of vectors spares most of the comparisons of an answer by vectors. Its cells are looked
// into from the most promising on, until none is left that is likely to have one of the first k. In
// a cell codes of one bit a dimension give an estimate of each distance, and how wrong that may be.
// What may be among the first is compared by 8 bits a dimension, and what is left is read, as without
// the index. So hits are in the order of their vectors, each has its exact similarity, and filters
// hold; but one may be missing: one whose cell was not looked into, or whose estimate was worse
// than allowed for. How much is looked at follows from the recall that is asked for, by what was
// measured when the index was made. Rows that the index does not know are all compared.

// sureOf returns how many standard deviations of the error of an estimate are allowed for with a reach: who
// wants more of the nearest can do with less error, too.
func sureOf(reach float64) float32 { return 2 + float32(reach) }

// A cellSearch is the part that indexes have in an answer by vectors.
type cellSearch struct {
	of       []*indexSearch // by number of the comparison; nil: there is no index of its vectors
	expected float64        // recall
	looked   Looked         // of all indexes
	admitted int            // rows that may be hits by what the indexes know
	cut      bool           // rows were left out by the candidates that were found last

	abandoned bool // an index was given up
}

// Looked is what a search has looked at in indexes.
type Looked struct {
	Cells   int
	Entries int // of these cells
}

// An indexSearch looks for vectors in one index.
type indexSearch struct {
	x                   *state.IndexView
	table               *cells.Table
	query               *cells.Query
	reach               float64
	but                 uint32  // a row that is left out
	most                float64 // nanoseconds after which the index is given up
	expected, predicted float64 // recall; nanoseconds
	spent               float64 // of these, by the calls of candidates before
	*indexMemory
}

// An indexMemory is memory that searches use one after the other.
type indexMemory struct {
	probes  cells.Probes
	found   []cells.Found
	all     []cells.Found
	nearest distances
}

var indexMemories = sync.Pool{New: func() any { return new(indexMemory) }}

// close gives memory back.
func (c *cellSearch) close() {
	for _, o := range c.of {
		if o != nil {
			o.close()
		}
	}
}

func (o *indexSearch) close() {
	if o.indexMemory != nil {
		o.probes.Forget()
		indexMemories.Put(o.indexMemory)
		o.indexMemory = nil
	}
}

// startCells lets indexes find the answer, if there are any and the query does with less than all.
func (s *Searcher) startCells(ctx context.Context) error {
	if s.q.Recall >= 1 || s.q.Forced == nil && s.costOfAll(s.filter.GetCardinality()) < cells.ExactCost {
		return nil
	}
	c := &cellSearch{of: make([]*indexSearch, len(s.compared)), expected: 1}
	any, choice := false, false
	for i, with := range s.compared {
		all := s.costOfAll(s.admitted(with).GetCardinality())
		o, err := s.indexFor(ctx, with, all)
		if err != nil {
			return err
		}
		s.predicted.vectors += all
		if o == nil {
			s.predicted.cells += all
			continue
		}
		choice = choice || s.q.Forced == nil
		s.predicted.cells += o.predicted
		if o.predicted > all && cells.ExactCost > 0 {
			continue
		}
		centres := o.table.Centres()
		y := make([]float32, centres.Size())
		centres.Place(y, s.p.vector.Value)
		if !cells.HasPlace(y) {
			continue
		}
		o.query = centres.NewQuery()
		o.query.Set(y)
		o.indexMemory = indexMemories.Get().(*indexMemory)
		c.expected = min(c.expected, o.expected)
		c.of[i], any = o, true
	}
	if any {
		s.cells = c
	}
	if !choice {
		s.predicted = prediction{}
	}
	return nil
}

// admitted returns the rows whose vectors a comparison may compare.
func (s *Searcher) admitted(with comparison) *roaring.Bitmap {
	if with.rows != nil {
		return with.rows
	}
	return s.filter
}

// indexFor prepares the search of a comparison in its index. It returns nil if there is no index, or if
// the index cannot reach the recall. all is the time in nanoseconds of comparing all vectors: the search
// gives up its index after it.
func (s *Searcher) indexFor(ctx context.Context, with comparison, all float64) (*indexSearch, error) {
	if f := s.q.Forced; f != nil {
		o := &indexSearch{x: s.Cv.IndexNumber(f.Index), reach: f.Reach, but: f.But, most: math.Inf(1), expected: 1}
		return s.load(ctx, o, with)
	}
	o := &indexSearch{x: s.Cv.IndexOf(with.modality, s.metric), but: noRow, most: math.Inf(1)}
	if o.x == nil {
		return nil, nil
	}
	if o.x.Outgrown() {
		s.outgrown = append(s.outgrown, s.Cv.Modalities[with.modality].Name)
		return nil, nil
	}
	rows, having := s.admitted(with).GetCardinality(), s.Cv.Presence[with.modality].GetCardinality()
	hits := float64(min(uint64(s.q.K), rows)) // at the most
	k := hits * float64(max(having, 1)) / float64(max(rows, 1))
	wanted := cmp.Or(s.q.Recall, o.x.Recall)
	expected := 0.0
	if o.reach, expected = o.x.VectorIndex.Reach(k, wanted); wanted >= 1 || expected < wanted {
		return nil, nil // nothing that was measured finds so much
	}
	o, err := s.load(ctx, o, with)
	if o == nil || err != nil {
		return nil, err
	}
	o.predicted = o.costOfCells(k) + s.unread()*hits*perRead*candidatesOfHit
	if cells.ExactCost > 0 {
		o.most = all
	}
	o.expected = expected
	return o, nil
}

// load waits until the index of a comparison is in memory. It returns nil if there is none, or it is
// damaged: an event has told that, Report tells it, and all vectors can answer.
func (s *Searcher) load(ctx context.Context, o *indexSearch, with comparison) (*indexSearch, error) {
	if o.x == nil {
		return nil, nil
	}
	var err error
	if o.table, err = o.x.Loaded(ctx); errors.Is(err, fault.ErrCorrupt) {
		s.damaged = append(s.damaged, s.Cv.Modalities[with.modality].Name)
		return nil, nil
	}
	return o, err
}

// Approximate reports whether items may be missing from the answer.
func (s *Searcher) Approximate() bool {
	return s.cells != nil && slices.ContainsFunc(s.cells.of, func(o *indexSearch) bool { return o != nil })
}

// candidates returns the rows to compare, of those that pass the filter, for the first k behind a
// cursor: those that indexes admit, and those that they do not know.
func (s *Searcher) candidates(ctx context.Context, after *rankedRow, k int) (*roaring.Bitmap, error) {
	behind, most := float32(math.Inf(-1)), float32(math.Inf(1))
	if after != nil {
		behind = s.distanceOf(after.similarity)
	}
	if least := s.leastRanked(); !math.IsInf(float64(least), -1) {
		most = s.distanceOf(least)
	}
	rows := roaring.New()
	s.cells.cut = false
	for i, with := range s.compared {
		filter := s.admitted(with)
		o := s.cells.of[i]
		if o == nil {
			rows.Or(filter)
			continue
		}
		passing := filter
		if s.unfiltered {
			passing = nil // entries of rows that are gone are stale
		}
		admitted, looked, cut, err := o.candidates(ctx, passing, k, behind, most)
		s.cells.looked.Cells, s.cells.looked.Entries = s.cells.looked.Cells+looked.Cells, s.cells.looked.Entries+looked.Entries
		if err == errTooLong {
			o.close()
			s.cells.of[i], s.cells.abandoned = nil, true
			rows.Or(filter)
			continue
		}
		if err != nil {
			return nil, err
		}
		s.cells.cut = s.cells.cut || cut
		s.cells.admitted += len(admitted)
		slices.Sort(admitted)
		rows.AddMany(admitted)
		rows.Or(roaring.And(filter, o.x.Stale))
		if o.x.Covered < s.Cv.NextRow {
			tail := roaring.New()
			tail.AddRange(o.x.Covered, s.Cv.NextRow)
			tail.And(filter)
			rows.Or(tail)
		}
		rows.Remove(o.but)
	}
	return rows, nil
}

// distanceOf returns the distance in the terms of an index that vectors of a ranked similarity have.
func (s *Searcher) distanceOf(similarity float32) float32 {
	switch s.metric {
	case record.Dot:
		return -2 * similarity
	case record.L2:
		return -similarity
	}
	return 2 - 2*similarity
}

// errTooLong says that comparing all would have taken less time.
var errTooLong = errors.New("an index takes too long")

// candidates returns the rows that may be among the first k of those that pass the filter, by
// estimates alone: so they do not depend on what is in memory. They are those whose distance may be
// below that of the k-th, as far as both are known, and no cell is looked into that does not promise
// as much. A nil filter admits all. after and most, unless they are infinite, are the distance of the
// cursor, and the largest that a hit may have. cut says that others were left out for the k-th.
func (o *indexSearch) candidates(ctx context.Context, filter *roaring.Bitmap, k int, after, most float32) (rows []uint32, looked Looked, cut bool, err error) {
	o.table.Probes(o.query, o.reach, &o.probes)
	o.nearest = distances{k: k, heap: o.nearest.heap[:0]}
	stale := o.x.Stale
	if stale.IsEmpty() {
		stale = nil
	}
	sure := sureOf(o.reach)
	floor := float32(math.Inf(1)) // the distance of the k-th
	all := o.all[:0]
	crowded := 1024
	for {
		p, more := o.probes.Next(floor)
		if !more {
			break
		}
		// Least says what is likely to follow the ones found. A distance that is given needs what is certain.
		if p.Bound > float64(most) {
			continue
		}
		if looked.Cells%16 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, looked, false, err
			}
		}
		looked.Cells++
		looked.Entries += o.table.Len(p.Cell)
		if o.spent+o.costOfLooking(looked) > o.most {
			return nil, looked, false, errTooLong
		}
		limit := min(floor, most)
		o.found = o.table.Scan(o.found[:0], o.query, p, float64(sure), limit)
		for _, x := range o.found {
			if x.Distance-sure*x.Spread > limit || x.Row == o.but || filter != nil && !filter.Contains(x.Row) || stale != nil && stale.Contains(x.Row) {
				continue
			}
			all = append(all, x)
			if x.Distance >= after {
				floor = min(floor, o.nearest.add(x.Distance+x.Spread))
				limit = min(limit, floor)
			}
		}
		if len(all) > crowded {
			all = o.without(all, limit)
			crowded = max(crowded, 2*len(all))
		}
	}
	o.all, o.spent = all, o.spent+o.costOfLooking(looked)
	all = o.without(all, min(floor, most))
	rows = make([]uint32, len(all))
	for i, x := range all {
		rows[i] = x.Row
	}
	return rows, looked, floor < most, nil
}

// without leaves out what is above the floor for all that is known.
func (o *indexSearch) without(all []cells.Found, floor float32) []cells.Found {
	sure := sureOf(o.reach)
	return slices.DeleteFunc(all, func(x cells.Found) bool { return x.Distance-sure*x.Spread > floor })
}

// distances are the k smallest that were added: a heap with the largest first.
type distances struct {
	k    int
	heap []float32
}

// add adds a distance, and returns the k-th; infinity while there are fewer.
func (d *distances) add(x float32) float32 {
	h := d.heap
	switch {
	case len(h) < d.k:
		h = append(h, x)
		for i := len(h) - 1; i > 0 && h[(i-1)/2] < h[i]; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		d.heap = h
	case x < h[0]:
		h[0] = x
		for i := 0; ; {
			j := 2*i + 1
			if j+1 < len(h) && h[j+1] > h[j] {
				j++
			}
			if j >= len(h) || h[i] >= h[j] {
				break
			}
			h[i], h[j] = h[j], h[i]
			i = j
		}
	}
	if len(h) < d.k {
		return float32(math.Inf(1))
	}
	return h[0]
}

// Similarities returns those of the hits of an answer by an index, and what was looked at.
func Similarities(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, q Query) (all []float32, looked Looked, err error) {
	s, err := New(ctx, tools, v, cv, q)
	if err != nil {
		return nil, looked, err
	}
	defer s.Close()
	switch {
	case s.cells != nil:
	case cv.IndexNumber(q.Forced.Index) != nil: // the vector has no place in it
		return nil, looked, nil
	default:
		return nil, looked, fault.NotFound("index %d of collection %q", q.Forced.Index, cv.Name)
	}
	rows, err := s.rankVectors(ctx, nil, nil, q.K)
	for _, r := range rows {
		all = append(all, r.similarity)
	}
	return all, s.cells.looked, err
}
