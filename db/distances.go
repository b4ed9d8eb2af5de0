package db

import (
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/report"
)

// distancesOf sums up how many queries there were by distance; nil for none.
func distancesOf(counts []int64) *report.Distances {
	n, sum := int64(0), int64(0)
	for d, count := range counts {
		n, sum = n+count, sum+count*int64(d)
	}
	if n == 0 {
		return nil
	}
	within := func(queries int64) int {
		d := 0
		for queries -= counts[0]; queries > 0; queries -= counts[d] {
			d++
		}
		return d
	}
	return &report.Distances{
		Queries: int(n), Mean: float64(sum) / float64(n),
		P50: within((n + 1) / 2), P90: within((9*n + 9) / 10),
	}
}

// A histogram counts the distances from the queries of a space to their nearest hits,
// from 0 to the number of bits. The revisions of the space share it.
type histogram []atomic.Int64

// report sums the counts up.
func (h histogram) report() *report.Distances {
	var few [257]int64
	counts := few[:0]
	for d := range h {
		counts = append(counts, h[d].Load())
	}
	return distancesOf(counts)
}

// observe counts the answer to a query, unless it goes on behind a cursor or starts from
// an item, which finds itself.
func (s *searcher) observe(r *Result) {
	if len(r.Hits) == 0 || s.q.After != "" || s.q.Key != "" {
		return
	}
	nearest := r.Hits[0].Distance
	for _, h := range r.Hits[1:] { // which some orders do not put first
		nearest = min(nearest, h.Distance)
	}
	s.cv.distances[nearest].Add(1)
}
