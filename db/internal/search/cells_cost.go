package search

import "github.com/fddhdb/fddhdb/internal/quant"

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
