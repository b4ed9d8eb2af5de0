package signal

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// Latencies are event.Latencies under construction: a histogram that any goroutine may add
// to, without a lock. The zero value is empty.
type Latencies struct {
	sum     atomic.Int64                        // nanoseconds
	buckets [event.LatencyBuckets]atomic.Uint64 // calls by duration; see event.LatencyBound
}

// Observe counts a call that took d. It costs two atomic additions.
func (l *Latencies) Observe(d time.Duration) {
	d = max(d, 0)
	l.sum.Add(int64(d))
	// i is how often a microsecond has to be doubled to reach d.
	i := bits.Len64(uint64(max(d-1, 0) / time.Microsecond))
	l.buckets[min(i, event.LatencyBuckets-1)].Add(1)
}

// Since counts a call that began at start and ends now.
func (l *Latencies) Since(start time.Time) { l.Observe(time.Since(start)) }

// Stats returns the histogram as it is now. A call that is counted meanwhile may be in Sum
// and not in Buckets. Count is always the sum of Buckets, which event.Latencies.Quantile
// relies on.
func (l *Latencies) Stats() (out event.Latencies) {
	out.Sum = time.Duration(l.sum.Load())
	for i := range l.buckets {
		out.Buckets[i] = l.buckets[i].Load()
		out.Count += out.Buckets[i]
	}
	return out
}
