package db

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
)

// latencies are Latencies that grow. Safe for concurrent use.
type latencies struct {
	sum     atomic.Int64 // nanoseconds
	buckets [event.LatencyBuckets]atomic.Uint64
}

func (l *latencies) observe(d time.Duration) {
	d = max(d, 0)
	l.sum.Add(int64(d))
	// How often a microsecond has to be doubled to reach d.
	i := bits.Len64(uint64(max(d-1, 0) / time.Microsecond))
	l.buckets[min(i, event.LatencyBuckets-1)].Add(1)
}

func (l *latencies) since(start time.Time) { l.observe(time.Since(start)) }

func (l *latencies) stats() (out event.Latencies) {
	out.Sum = time.Duration(l.sum.Load())
	for i := range l.buckets {
		out.Buckets[i] = l.buckets[i].Load()
		out.Count += out.Buckets[i]
	}
	return out
}
