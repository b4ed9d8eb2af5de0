package event

import (
	"math"
	"time"
)

// LatencyBuckets is the number of buckets of Latencies.
const LatencyBuckets = 27

// Latencies is a histogram of the durations of calls. Bucket i counts the calls that
// took at most LatencyBound(i), and more than the bound before. It is a copy, which no call
// changes.
type Latencies struct {
	Count   uint64                 `json:"count"`   // number of calls: the sum of Buckets
	Sum     time.Duration          `json:"sum_ns"`  // of all durations
	Buckets [LatencyBuckets]uint64 `json:"buckets"` // number of calls by duration
}

// LatencyBound returns the upper bound of bucket i of Latencies: a microsecond for the
// first, twice as much for each further one, up to half a minute, and no bound for the
// last.
func LatencyBound(i int) time.Duration {
	if i >= LatencyBuckets-1 {
		return math.MaxInt64
	}
	return time.Microsecond << i
}

// Quantile returns an upper bound of the time within which a share q, from 0 to 1, of
// the calls ended: the bound of their bucket. It is less than twice that time if that is
// between a microsecond and half a minute. For shorter times it is a microsecond, for longer
// ones the largest Duration. It is 0 if there were no calls.
func (l *Latencies) Quantile(q float64) time.Duration {
	if l.Count == 0 {
		return 0
	}
	want := min(uint64(math.Ceil(q*float64(l.Count))), l.Count)
	i, within := 0, l.Buckets[0]
	for within < want {
		i++
		within += l.Buckets[i]
	}
	return LatencyBound(i)
}
