package state

import (
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// commitFigures are what the committer has done since opening. Safe for concurrent use.
// Commits of tables count in Put at most.
type commitFigures struct {
	Put     atomic.Uint64 // items that were put or merged
	Deleted atomic.Uint64 // items that were there

	Waiting  atomic.Int64     // requests that were submitted and are not answered
	Commits  signal.Latencies // from the first request to the view
	Requests atomic.Uint64    // that were committed
	Bytes    atomic.Uint64    // of their batches
	Syncs    signal.Latencies // how long commits have waited for the disk
}

// changed counts the items that a committed request has put and deleted.
func (c *commitFigures) changed(r *Request) {
	for _, ch := range r.Changes {
		switch ch.Kind {
		case PutItem, MergeItem:
			c.Put.Add(1)
		case DeleteItem:
			if ch.Found {
				c.Deleted.Add(1)
			}
		}
	}
}

// committed counts the commit of a flight, whose requests are also those that were refused.
func (c *commitFigures) committed(f *flight) {
	c.Commits.Since(f.began)
	c.Bytes.Add(uint64(f.batch.Len()))
	if f.sync {
		c.Syncs.Observe(f.batch.CommitStats().CommitWaitDuration)
	}
	for _, r := range f.requests {
		if r.err == nil {
			c.Requests.Add(1)
			c.changed(r)
		}
	}
}
