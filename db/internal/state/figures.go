package state

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

// A histogram counts the distances from the queries of a space to their nearest hits,
// from 0 to the number of bits. The revisions of the space share it.
type histogram []atomic.Int64

// Report sums the counts up.
func (h histogram) Report() *report.Distances {
	var few [257]int64
	counts := few[:0]
	for d := range h {
		counts = append(counts, h[d].Load())
	}
	return DistancesOf(counts)
}

// DistancesOf sums up how many queries there were by distance; nil for none.
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

// A knownBalance is the last balance of the codes of a space, so that Stats costs little
// however often it is called. All revisions of the space have one.
type knownBalance struct {
	Measuring sync.Mutex
	Last      atomic.Pointer[MeasuredBalance]
}

// MeasuredBalance is a balance and what it is of.
type MeasuredBalance struct {
	Tables  []weak.Pointer[mih.Table] // that it must not keep
	Balance *report.Balance
	Until   time.Time // when it is worth the time to measure another one
}
