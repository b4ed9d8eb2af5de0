package search

import "github.com/fddhdb/fddhdb/internal/quant"

// An answer by vectors compares all that pass the filter, or asks an index which: the plan "vectors" or
// "cells". The one that is predicted to take less is chosen. Where looking into cells has taken as long
// as all comparisons would have taken, the index is given up for them: so a prediction that was wrong
// about doubles the time at the most.
//
// A filter that admits one vector of m makes the k-th about as far as the m*k-th without a filter. So
// what was measured for so many more neighbours says what the index finds, and which cells that takes.

// The times of parts of an answer by vectors in nanoseconds, on a machine of 2024 with AVX-512 and
// 100,000 vectors. What counts is how they compare, and they are the same on all machines: so are
// plans.
const (
	perVector    = 15.   // a comparison by 8 bits
	perDimension = .08   // of it
	perRead      = 4500. // a comparison by the vector, from the cache of the store
	perCentre    = 25.   // what a cell has to offer
	perCell      = 750.  // a cell that is looked into
	perEntry     = 2.    // of it
	perBit       = .005  // of an entry
	perNeighbour = 150.  // of those that a search without a filter would find
)

// A prediction has nanoseconds that answers by vectors take, by their plans; 0 where there is no choice.
type prediction struct{ vectors, cells float64 }

// candidatesOfHit is about how many vectors are read for each hit where none are in memory.
const candidatesOfHit = 4

// unread returns the share of the vectors, 0 to 1, that do not fit into Options.RerankCacheBytes. These
// are read from the store. It does not depend on how far vectors have been loaded, so the plan of a
// query is the same right after opening and later.
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

// costOfLooking returns the time in nanoseconds of looking into cells of an index.
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
