package state

import (
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/report"
)

// A histogram counts, for each distance from 0 to the number of bits, the queries of a space whose nearest
// hit has it. Each search makes one atomic addition. The revisions and code sets of the space share the
// histogram. It is empty when the database is opened.
type histogram []atomic.Int64

// Report summarizes the present counts; nil if there were no queries.
func (h histogram) Report() *report.Distances {
	var few [257]int64
	counts := few[:0]
	for d := range h {
		counts = append(counts, h[d].Load())
	}
	return DistancesOf(counts)
}

// DistancesOf summarizes counts[d] queries at each distance d; nil if there were none.
func DistancesOf(counts []int64) *report.Distances {
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
