package event

import (
	"math"
	"time"
)

// LatencyBuckets is the number of buckets of Latencies.
const LatencyBuckets = 27

// Latencies is a histogram of how long calls took. Bucket i counts those that took at most
// LatencyBound(i), and more than the bound before.
type Latencies struct {
	Count   uint64                 `json:"count"`
	Sum     time.Duration          `json:"sum_ns"`
	Buckets [LatencyBuckets]uint64 `json:"buckets"`
}

// LatencyBound returns the upper bound of bucket i of Latencies: a microsecond for the
// first, twice as much for each that follows, up to half a minute, and no bound for the last.
func LatencyBound(i int) time.Duration {
	if i >= LatencyBuckets-1 {
		return math.MaxInt64
	}
	return time.Microsecond << i
}

// Quantile returns an upper bound of the shortest time within which a part q, from 0 to 1,
// of the calls ended; it is at most twice that time. It is 0 where there were none.
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
