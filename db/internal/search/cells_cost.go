package search

import "github.com/fddhdb/fddhdb/internal/cells"

// An answer by vectors compares all that pass the filter, or asks an index which: the plan "vectors" or
// "cells". The one that is predicted to take less is chosen, and where the index has taken as long as
// all comparisons would have taken it is given up for them: so an answer takes at most about twice as
// long as by the better plan, whatever the prediction was worth.
//
// A filter that admits one vector of m makes the k-th about as far as the m*k-th without a filter. So
// what was measured for so many more neighbours says what the index finds, and which cells that takes.

// The times of parts of an answer by vectors in nanoseconds, on a machine of 2024 with AVX-512. What
// counts is how they compare, and they are the same on all machines: so are plans.
const (
	perVector    = 12.   // a comparison by 8 bits
	perDimension = .07   // of it
	perRead      = 4500. // a comparison by the vector, from the cache of the store
	perCode      = 1.2   // an estimate by an entry of a cell
	perBit       = .004  // of it
	perCell      = 250.  // a cell that is looked into
)

// A prediction has nanoseconds that answers by vectors take, by their plans; 0 where there is no choice.
type prediction struct{ vectors, cells float64 }

// costOfAll returns the time in nanoseconds of comparing n vectors with the query.
func (s *Searcher) costOfAll(n uint64) float64 {
	if s.bounds == nil { // they are not kept in memory, and all are read
		return float64(n) * perRead
	}
	return float64(n) * (perVector + perDimension*float64(len(s.p.vector.Value)))
}

// costOfEntries returns the time in nanoseconds of looking into cells of an index.
func costOfEntries(c *cells.Centres, looked Looked) float64 {
	return float64(looked.Cells)*perCell + float64(looked.Entries)*(perCode+perBit*float64(c.Size()))
}

// costOfCells returns the predicted time in nanoseconds of finding the k nearest with a reach.
func (o *indexSearch) costOfCells(k float64) float64 {
	c := o.table.Centres()
	probes, entries := o.x.VectorIndex.Looks(k, o.reach)
	if entries == 0 { // it was measured before that was kept
		entries = probes * float64(o.table.Rows()) / float64(c.Count())
	}
	return costOfEntries(c, Looked{Entries: c.Count()}) + costOfEntries(c, Looked{int(probes), int(entries)})
}
