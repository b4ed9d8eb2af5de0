package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

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

// Sure is how many standard deviations of the error of an estimate are allowed for.
const Sure = 2

// A cellSearch is the part that indexes have in an answer by vectors.
type cellSearch struct {
	of       []*indexSearch // by number of the comparison; nil: there is no index of its vectors
	expected float64        // recall
	probed   int            // cells that were looked into
	admitted int            // rows that may be hits by what the indexes know
	cut      bool           // rows were left out by the candidates that were found last
}

// An indexSearch looks for vectors in one index.
type indexSearch struct {
	x      *state.IndexView
	table  *cells.Table
	query  *cells.Query
	probes cells.Probes
	found  []cells.Found
	reach  float64
	sure   float32
}

// startCells lets indexes find the answer, if there are any and the query does with less than all.
func (s *Searcher) startCells(ctx context.Context) error {
	recall := s.q.Recall
	if recall >= 1 || s.q.Forced == nil && s.filter.GetCardinality()*uint64(len(s.p.vector.Value)) < cells.ExactNumbers {
		return nil
	}
	c := &cellSearch{of: make([]*indexSearch, len(s.compared)), expected: 1}
	any := false
	for i, with := range s.compared {
		x := s.Cv.IndexOf(with.modality, s.metric)
		if s.q.Forced != nil {
			x = s.Cv.IndexNumber(s.q.Forced.Index)
		}
		if x == nil {
			continue
		}
		o := &indexSearch{x: x, sure: Sure}
		if f := s.q.Forced; f != nil {
			o.reach, o.sure = f.Reach, f.Sure
		} else {
			wanted := cmp.Or(recall, x.Recall)
			expected := 0.0
			if o.reach, expected = x.VectorIndex.Reach(s.q.K, wanted); wanted >= 1 || expected < wanted {
				continue // nothing that was measured finds so much
			}
			c.expected = min(c.expected, expected)
		}
		var err error
		o.table, err = x.Loaded(ctx)
		if errors.Is(err, fault.ErrCorrupt) {
			continue // an event has told; all vectors can answer
		}
		if err != nil {
			return err
		}
		if s.q.Forced == nil && !x.MeasuredOf(o.table) {
			continue // it has been outgrown, and is about to be measured again
		}
		centres := o.table.Centres()
		y := make([]float32, centres.Size())
		centres.Place(y, s.p.vector.Value)
		if !cells.HasPlace(y) {
			continue
		}
		o.query = centres.NewQuery()
		o.query.Set(y)
		c.of[i], any = o, true
	}
	if any {
		s.cells = c
	}
	return nil
}

// Approximate reports whether items may be missing from the answer.
func (s *Searcher) Approximate() bool { return s.cells != nil }

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
		filter := with.rows
		if filter == nil {
			filter = s.filter
		}
		o := s.cells.of[i]
		if o == nil {
			rows.Or(filter)
			continue
		}
		admitted, probed, cut, err := o.candidates(ctx, filter, k, behind, most)
		if err != nil {
			return nil, err
		}
		s.cells.cut = s.cells.cut || cut
		s.cells.probed, s.cells.admitted = s.cells.probed+probed, s.cells.admitted+len(admitted)
		slices.Sort(admitted)
		rows.AddMany(admitted)
		rows.Or(roaring.And(filter, o.x.Stale))
		if o.x.Covered < s.Cv.NextRow {
			tail := roaring.New()
			tail.AddRange(o.x.Covered, s.Cv.NextRow)
			tail.And(filter)
			rows.Or(tail)
		}
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

// candidates returns the rows that may be among the first k of those that pass the filter, by
// estimates alone: so they do not depend on what is in memory. They are those whose distance may be
// below that of the k-th, as far as both are known, and no cell is looked into that does not promise
// as much. after and most, unless they are infinite, are the distance of the cursor, and the largest
// that a hit may have. probed counts cells. cut says that k rows were found, and others may be left out.
func (c *indexSearch) candidates(ctx context.Context, filter *roaring.Bitmap, k int, after, most float32) (rows []uint32, probed int, cut bool, err error) {
	c.table.Probes(c.query, c.reach, &c.probes)
	nearest := distances{k: k}
	floor := most
	var all []cells.Found
	crowded := 1024
	for {
		p, more := c.probes.Next(floor)
		if !more {
			break
		}
		if probed%16 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, probed, false, err
			}
		}
		probed++
		c.found = c.table.Scan(c.found[:0], c.query, p, float64(c.sure), floor)
		for _, x := range c.found {
			if x.Distance-c.sure*x.Spread > floor || !filter.Contains(x.Row) || c.x.Stale.Contains(x.Row) {
				continue
			}
			all = append(all, x)
			if x.Distance >= after {
				floor = min(floor, nearest.add(x.Distance+x.Spread))
			}
		}
		if len(all) > crowded {
			all = c.without(all, floor)
			crowded = max(crowded, 2*len(all))
		}
	}
	all = c.without(all, floor)
	rows = make([]uint32, len(all))
	for i, x := range all {
		rows[i] = x.Row
	}
	return rows, probed, len(nearest.heap) >= k, nil
}

// without leaves out what is above the floor for all that is known.
func (c *indexSearch) without(all []cells.Found, floor float32) []cells.Found {
	return slices.DeleteFunc(all, func(x cells.Found) bool { return x.Distance-c.sure*x.Spread > floor })
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

// Similarities returns those of the first K items of an answer by an index, but for that of one row,
// and how many cells were looked into.
func Similarities(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, q Query, but uint32) (all []float32, probed int, err error) {
	s, err := New(ctx, tools, v, cv, q)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	switch {
	case s.cells != nil:
	case cv.IndexNumber(q.Forced.Index) != nil: // the vector has no place in it
		return nil, 0, nil
	default:
		return nil, 0, fault.NotFound("index %d of collection %q", q.Forced.Index, cv.Name)
	}
	rows, err := s.rankVectors(ctx, nil, nil, q.K)
	for _, r := range rows {
		if r.row != but {
			all = append(all, r.similarity)
		}
	}
	return all, s.cells.probed, err
}
