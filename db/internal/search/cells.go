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
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/mih"
)

// An index of vectors saves most comparisons of an answer by vectors. The search visits cells, the most
// promising first, until no remaining cell is likely to have one of the first k. In a cell, codes of one bit
// a dimension give an estimate of each distance, with its error. Rows that may be among the first are
// compared at 8 bits a dimension, and the rest is read, as without the index. So hits are in the order of
// their vectors and have exact similarities, and filters hold. But a hit may be missing if its cell was not
// visited, or if its estimate was worse than the search allows. The recall of the query decides how much a
// search visits, by measurements made with the index. A search compares all rows that the index does not
// cover.

// sureOf returns the number of standard deviations that a search with this reach allows for the error of an
// estimate: a higher recall needs fewer errors too.
func sureOf(reach float64) float32 { return 2 + float32(reach) }

// A cellSearch is the state of the indexes in an answer by vectors.
type cellSearch struct {
	of       []*indexSearch // by number of the comparison; nil: its vectors have no index
	expected float64        // recall
	looked   Looked         // in all indexes
	admitted int            // rows that may be hits by the estimates
	cut      bool           // the last candidates exclude rows beyond the k-th

	abandoned bool // an index was given up
}

// Looked counts the cells and entries that a search has visited.
type Looked struct {
	Cells   int
	Entries int // in these cells
}

// An indexSearch searches one index.
type indexSearch struct {
	x                   *state.IndexView
	table               *cells.Table
	query               *cells.Query
	reach               float64
	but                 uint32  // row to leave out
	most                float64 // nanoseconds after which the search gives the index up
	expected, predicted float64 // recall; nanoseconds
	spent               float64 // nanoseconds of earlier calls of candidates
	*indexMemory
}

// An indexMemory is scratch memory that one search after the other uses.
type indexMemory struct {
	probes  cells.Probes
	found   []cells.Found
	all     []cells.Found
	nearest distances
}

var indexMemories = sync.Pool{New: func() any { return new(indexMemory) }}

// close returns memory to the pool.
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

// startCells prepares the indexes, if there are any and the query does not ask for an exact answer.
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

// admitted returns the rows whose vectors a comparison compares.
func (s *Searcher) admitted(with comparison) *roaring.Bitmap {
	if with.rows != nil {
		return with.rows
	}
	return s.filter
}

// indexFor prepares the search of a comparison in its index. It returns nil if there is no index, or if the
// index cannot reach the recall. all is the predicted time of comparing all vectors, in nanoseconds; after it
// the search gives its index up.
func (s *Searcher) indexFor(ctx context.Context, with comparison, all float64) (*indexSearch, error) {
	if f := s.q.Forced; f != nil {
		o := &indexSearch{x: s.Cv.IndexNumber(f.Index), reach: f.Reach, but: f.But, most: math.Inf(1),
			expected: 1}
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
	hits := float64(min(uint64(s.q.K), rows)) // at most
	k := hits * float64(max(having, 1)) / float64(max(rows, 1))
	wanted := cmp.Or(s.q.Recall, o.x.Recall)
	expected := 0.0
	if o.reach, expected = o.x.VectorIndex.Reach(k, wanted); wanted >= 1 || expected < wanted {
		return nil, nil // no measurement reached this recall
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

// load waits until the index of a comparison is in memory. It returns nil if there is none, or if it is
// damaged: then all vectors answer. An event and Report name the damage.
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
	if !s.byVectors {
		return s.How().Plan == mih.PlanCells
	}
	return s.cells != nil && slices.ContainsFunc(s.cells.of, func(o *indexSearch) bool { return o != nil })
}

// candidates returns the rows to compare for the first k behind a cursor. All pass the filter. They are the
// candidates of the indexes, and the rows that the indexes do not cover.
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
			passing = nil // entries without a live row are stale
		}
		admitted, looked, cut, err := o.candidates(ctx, passing, k, behind, most)
		s.cells.looked.Cells, s.cells.looked.Entries = s.cells.looked.Cells+looked.Cells,
			s.cells.looked.Entries+looked.Entries
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

// distanceOf converts the similarity of a rankedRow to a distance of an index.
func (s *Searcher) distanceOf(similarity float32) float32 {
	switch s.metric {
	case record.Dot:
		return -2 * similarity
	case record.L2:
		return -similarity
	}
	return 2 - 2*similarity
}

// errTooLong means that comparing all vectors would have taken less time.
var errTooLong = errors.New("an index takes too long")

// candidates returns the rows that pass the filter and may be among the first k. It uses estimates alone, so
// the result does not depend on memory. A row stays if its distance, within its error, may be below the k-th
// distance; a cell is visited only if it promises such rows. A nil filter admits all. after and most, unless
// infinite, are the distance of the cursor, and the largest distance of a hit. cut says that rows beyond the
// k-th were left out.
func (o *indexSearch) candidates(ctx context.Context, filter *roaring.Bitmap, k int, after,
	most float32) (rows []uint32, looked Looked, cut bool, err error) {
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
		// Least bounds the next neighbour after the ones found. A given distance needs a certain bound.
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
			if x.Distance-sure*x.Spread > limit || x.Row == o.but ||
				filter != nil && !filter.Contains(x.Row) || stale != nil && stale.Contains(x.Row) {
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

// without removes entries that are above the floor even with the allowed error.
func (o *indexSearch) without(all []cells.Found, floor float32) []cells.Found {
	sure := sureOf(o.reach)
	return slices.DeleteFunc(all, func(x cells.Found) bool { return x.Distance-sure*x.Spread > floor })
}

// distances keeps the k smallest distances added: a heap with the largest first.
type distances struct {
	k    int
	heap []float32
}

// add adds a distance, and returns the k-th; infinity if there are fewer.
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

// Similarities returns the similarities of the hits of an answer by an index, and counts the visited cells.
func Similarities(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView,
	q Query) (all []float32, looked Looked, err error) {
	s, err := New(ctx, tools, v, cv, q)
	if err != nil {
		return nil, looked, err
	}
	defer s.Close()
	switch {
	case s.cells != nil:
	case cv.IndexNumber(q.Forced.Index) != nil: // the vector has no place in the index
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

// An answer by vectors either compares all vectors that pass the filter (plan "vectors") or asks an index
// (plan "cells"). The plan with the shorter predicted time wins. If cells take as long as comparing all
// vectors would, the search gives the index up and compares all: so a wrong prediction at most about doubles
// the time.
//
// A filter that admits one vector of m makes the k-th about as far as the m*k-th without a filter. So the
// measurements for m*k neighbours predict the recall and the cells to visit.

// The times of parts of an answer by vectors in nanoseconds, on a machine of 2024 with AVX-512 and 100,000
// vectors. Only their ratios matter. They are the same on all machines, so plans are too.
const (
	perVector    = 15.   // a comparison by 8 bits
	perDimension = .08   // a dimension of it
	perRead      = 4500. // a comparison at full precision, from the cache of the store
	perCentre    = 25.   // the promise of a cell
	perCell      = 750.  // a visited cell
	perEntry     = 2.    // an entry of it
	perBit       = .005  // a bit of an entry
	perNeighbour = 150.  // a neighbour that a search without a filter would find
)

// A prediction has the nanoseconds of an answer by each plan; 0 if there is no choice.
type prediction struct{ vectors, cells float64 }

// candidatesOfHit is about the number of vectors read for each hit if none are in memory.
const candidatesOfHit = 4

// unread returns the share of the vectors, 0 to 1, that do not fit into Options.RerankCacheBytes and are read
// from the store. It does not depend on how far vectors are loaded, so a query has the same plan right after
// opening and later.
func (s *Searcher) unread() float64 {
	if s.bounds == nil {
		return 1
	}
	fit := float64(s.tools.RerankBytes) / float64(quant.VectorBytes(len(s.p.vector.Value)))
	return 1 - max(0, min(fit/float64(max(s.Cv.NextRow, 1)), 1))
}

// costOfAll returns the time in nanoseconds of comparing n vectors with the query.
func (s *Searcher) costOfAll(n uint64) float64 {
	unread := s.unread()
	return float64(n) * (unread*perRead + (1-unread)*(perVector+perDimension*float64(len(s.p.vector.Value))))
}

// costOfLooking returns the time in nanoseconds of visiting cells of an index.
func (o *indexSearch) costOfLooking(l Looked) float64 {
	return float64(l.Cells)*perCell + float64(l.Entries)*(perEntry+perBit*float64(o.table.Centres().Size()))
}

// costOfCells returns the predicted time in nanoseconds of finding the k nearest.
func (o *indexSearch) costOfCells(k float64) float64 {
	count := float64(o.table.Centres().Count())
	probes, entries := o.x.VectorIndex.Looks(k, o.reach)
	looked := Looked{Cells: int(min(probes, count)), Entries: int(min(entries, float64(o.table.Rows())))}
	return count*perCentre + k*perNeighbour + o.costOfLooking(looked)
}
