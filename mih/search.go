package mih

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// A Plan is a way to answer a query. All of them give the same answer.
type Plan uint8

const (
	// PlanAuto chooses the plan that is predicted to be fastest.
	PlanAuto Plan = iota
	// PlanMemory looks the substrings up in the tables in memory.
	PlanMemory
	// PlanScan reads all codes in memory.
	PlanScan
	// PlanFilter reads the codes of the rows that the filter admits.
	PlanFilter
	// PlanDisk looks the substrings up in stored postings.
	PlanDisk
	// PlanBlockScan reads the stored blocks of codes.
	PlanBlockScan
	// PlanCells reads the codes of the cells that are nearest to the query. It finds a share
	// of the nearest codes, see Query.Recall. No query can ask for it.
	PlanCells
)

var planNames = [...]string{"auto", "memory", "scan", "filter", "disk", "blockscan", "cells"}

func (p Plan) String() string { return planNames[p] }

// A Query asks a table for the codes near one.
type Query struct {
	Code   codec.Code
	Filter *roaring.Bitmap // rows that count; nil: every row that has a code
	Plan   Plan

	// Recall, if above 0 and below 1, lets Nearest leave results out: in the mean over
	// queries it finds this share of them. It then searches by cells where that is
	// predicted to be faster. With a Weight it finds all.
	Recall float64

	// Weight, if not nil, returns the number of results that a code stands for. It
	// replaces the number of the code's rows that pass the filter. 0 leaves the code
	// out. It is also called for codes that no row carries any more.
	Weight func(number uint32, distance int) int
}

// Explain tells what a search did, summed over all segments. A search that fills in an
// Explain again reuses the memory of its Substrings.
type Explain struct {
	Plan       Plan          // the plan that was followed
	Substrings []int         // number of substrings, of each segment
	Probes     int           // buckets or postings looked up
	Candidates int           // codes in them, duplicates included
	Compared   int           // candidates that were read and compared in full
	Scanned    int           // codes read in order
	Tail       int           // codes that are not indexed yet, which every plan scans; also in Scanned
	Found      int           // codes in the answer
	Recall     float64       // share of the nearest codes that is expected; 0: all are there
	Predicted  time.Duration // time that was predicted for Plan
	// Abandoned says that the search began with lookups, and gave up as a scan was
	// cheaper.
	Abandoned bool
}

// search is the state and the scratch memory of one search. It belongs to the goroutine
// of that search; searches keeps used ones.
type search struct {
	t          *Table // the table that is searched
	query      codec.Code
	ordered    codec.Code   // the query in the order of bits of the current segment
	substrings []uint32     // of ordered, in the current segment
	rings      rings        // lookups in the current segment
	entries    []uint32     // slots to compare, or numbers of PlanFilter
	ends       []int        // end in entries of each group of substrings
	nears      []codec.Near // scratch memory of the Hamming kernels
	before     []int        // histogram when the search of the current segment began
	mayScan    bool         // lookups may give up
	recall     float64      // share of the nearest codes to find; 0: all
	byCells    bool         // some segment was searched by cells
	filtered   uint64       // rows that the filter admits; 0: no filter
	distances  []uint16     // from the centres of cells
	from, to   []uint32     // slots of cells
	selection  selection    // scratch memory of a k-NN scan
	collector               // what has been found, by code number
	explain    Explain
}

var searches = sync.Pool{New: func() any { return new(search) }}

// newSearch takes a search from the pool; release gives it back.
func (t *Table) newSearch(q codec.Code) *search {
	s := searches.Get().(*search)
	s.t, s.query = t, q
	s.explain = Explain{Substrings: s.explain.Substrings[:0]}
	s.found, s.taken = s.found[:0], 0
	return s
}

func (s *search) release() {
	s.t, s.query, s.table, s.weight, s.selection.earlier = nil, nil, nil, nil, nil
	const keep = 1 << 20 // do not hold on to what one huge answer took
	if max(cap(s.found), cap(s.nears), cap(s.entries), cap(s.selection.found), cap(s.sorted)) <= keep {
		searches.Put(s)
	}
}

// nearsFor returns room for n Nears.
func (s *search) nearsFor(n int) []codec.Near {
	if cap(s.nears) < n {
		s.nears = make([]codec.Near, max(n, scanBlock+8))
	}
	return s.nears[:cap(s.nears)]
}

// enter prepares lookups in a segment.
func (s *search) enter(g *segment) {
	s.substrings = s.substrings[:0]
	s.ordered = g.order.apply(s.ordered, s.query)
	for j := range g.split.Len() {
		s.substrings = append(s.substrings, g.split.Of(s.ordered, j))
	}
	s.rings.reset(g)
}

// scanBlock is the number of codes that a scan compares before it looks at the result.
const scanBlock = 4096

// weight returns the number of results that code n stands for.
func (q *Query) weight(t *Table, n uint32, distance int) int {
	switch {
	case q.Weight != nil:
		return q.Weight(n, distance)
	case q.Filter != nil:
		return t.Rows(n).LenIn(q.Filter)
	}
	return t.Cardinality(n)
}

// Radius appends to dst the codes within r bits of the query that have a weight, and
// returns the sum of their weights. They come by distance, in any order where distances
// are equal. It fills in explain if that is not nil.
func (t *Table) Radius(ctx context.Context, q *Query, r int, dst []codec.Near,
	explain *Explain) (found []codec.Near, total int, err error) {
	s := t.newSearch(q.Code)
	defer s.release()
	if err := s.radius(ctx, q, r); err != nil {
		return dst, 0, err
	}
	kept := s.found[:0]
	for _, x := range s.found {
		if w := q.weight(t, x.Position(), x.Distance()); w > 0 {
			kept = append(kept, x)
			total += w
		}
	}
	s.explain.Found = len(kept)
	dst = appendByDistance(dst, kept, t.bits)
	s.explainTo(explain)
	return dst, total, nil
}

// appendByDistance appends Nears of at most q bits to dst, by distance. Nears of one
// distance keep their order. A search may find thousands and a user looks at the first
// few, so ordering the rest by number too would take longer than finding them.
func appendByDistance(dst, found []codec.Near, q int) []codec.Near {
	if len(found) <= 64 {
		start := len(dst)
		dst = append(dst, found...)
		slices.Sort(dst[start:])
		return dst
	}
	ends := make([]int, q+2) // ends[d+1]: end of the Nears at distance d
	for _, x := range found {
		ends[x.Distance()+1]++
	}
	for d := range q + 1 {
		ends[d+1] += ends[d]
	}
	start := len(dst)
	dst = slices.Grow(dst, len(found))[:start+len(found)]
	for _, x := range found {
		at := &ends[x.Distance()] // the end of the distance before is the start of this one
		dst[start+*at] = x
		*at++
	}
	return dst
}

// explainTo copies the explanation to e, if that is not nil, and keeps e's own memory.
func (s *search) explainTo(e *Explain) {
	if e == nil {
		return
	}
	own := e.Substrings[:0]
	*e = s.explain
	e.Substrings = append(own, s.explain.Substrings...)
	if e.Plan == PlanMemory && e.Probes == 0 && e.Scanned > e.Tail {
		e.Plan = PlanScan // segments have no tables, or measured that tables do not pay
	}
}

// radius finds the codes within r bits, in any order.
func (s *search) radius(ctx context.Context, q *Query, r int) error {
	r = min(r, s.t.bits)
	plan, predicted := q.Plan, 0.0
	if plan == PlanAuto {
		plan, predicted = s.t.plan(q, r)
	}
	s.explain.Plan, s.explain.Predicted = plan, time.Duration(predicted)
	if plan == PlanFilter {
		return s.filter(ctx, q, r)
	}
	for _, g := range s.t.segments {
		s.explain.Substrings = append(s.explain.Substrings, g.split.Len())
		if r == 0 && plan != PlanScan {
			if n, ok := g.find(s.query); ok {
				s.found = append(s.found, codec.NearOf(0, n))
			}
			s.explain.Probes++
			continue
		}
		scan := plan == PlanScan || g.bare || q.Plan == PlanAuto && !g.costs.tries(r)
		if !scan {
			var err error
			if scan, err = s.lookUpAll(ctx, g, r, q.Plan == PlanAuto); err != nil {
				return err
			}
		}
		if scan {
			if err := g.scan(ctx, s, r, nil); err != nil {
				return err
			}
		}
	}
	return s.scanTail(ctx, nil, r)
}

// lookUpAll looks up all rings of radius r, and compares what they bring. With mayScan
// it checks twice whether a scan is predicted to take less time than the rest: after as
// many rings as there are substrings, and before the comparisons. It reports whether it
// gave up.
func (s *search) lookUpAll(ctx context.Context, g *segment, r int, mayScan bool) (abandoned bool, err error) {
	s.enter(g)
	candidates, m := s.explain.Candidates, g.split.Len()
	for rings := 0; rings <= r && !abandoned; rings++ {
		if rings%8 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		g.lookUp(s)
		abandoned = mayScan && rings+1 == m && !g.costs.worthGoingOn(m, r, s.explain.Candidates-candidates)
	}
	if !abandoned {
		abandoned, err = g.cover(ctx, s, r, nil, mayScan)
	}
	s.explain.Abandoned = s.explain.Abandoned || abandoned
	return abandoned, err
}

// scanTail adds to s.found the codes of the tail within bound bits. If after is not
// nil, scanTail calls it when found has grown, and goes on with the bound that it
// returns.
func (s *search) scanTail(ctx context.Context, after func() int, bound int) error {
	tail := s.t.tail
	n := tail.Len()
	s.explain.Tail += n
	s.explain.Scanned += n
	for from := 0; from < n; from += scanBlock {
		if from%(64*scanBlock) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		to := min(from+scanBlock, n)
		near := s.nearsFor(to - from)
		found := codec.Within(near, s.query, tail.Slice(from, to), bound, s.t.tailFirst+uint32(from))
		s.found = append(s.found, near[:found]...)
		if after != nil && found > 0 {
			bound = after()
		}
	}
	return nil
}
