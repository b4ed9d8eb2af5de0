package state

import (
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// commitFigures are what the committer has done since opening. Safe for concurrent use.
type commitFigures struct {
	Put     atomic.Uint64 // items
	Deleted atomic.Uint64

	Waiting  atomic.Int64 // requests
	Commits  signal.Latencies
	Requests atomic.Uint64
	Bytes    atomic.Uint64
	Syncs    signal.Latencies
}

// Changed counts what a commit has made of items.
func (c *commitFigures) Changed(r *Request) {
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

// committed counts a commit of some requests that began at a time.
func (c *commitFigures) committed(tx *Tx, taken []*Request, began time.Time) {
	c.Commits.Since(began)
	c.Bytes.Add(uint64(tx.Batch.Len()))
	if tx.sync {
		c.Syncs.Observe(tx.Batch.CommitStats().CommitWaitDuration)
	}
	for _, r := range taken {
		if r.err == nil {
			c.Requests.Add(1)
			c.Changed(r)
		}
	}
}
