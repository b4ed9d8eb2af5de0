package state

import (
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// commitFigures are the figures of the committer since opening. Safe for concurrent use. A commit of tables adds
// to Put at most.
type commitFigures struct {
	Put     atomic.Uint64 // items that were put or merged
	Deleted atomic.Uint64 // items that existed

	Waiting  atomic.Int64     // requests submitted and not answered
	Commits  signal.Latencies // from the first request to the view
	Requests atomic.Uint64    // committed requests
	Bytes    atomic.Uint64    // bytes of their batches
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

// committed counts the commit of a flight. The flight also holds refused requests.
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
