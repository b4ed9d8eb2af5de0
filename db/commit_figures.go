package db

import (
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// commitFigures are what the committer has done since opening. Safe for concurrent use.
type commitFigures struct {
	put     atomic.Uint64 // items
	deleted atomic.Uint64

	waiting  atomic.Int64 // requests
	commits  signal.Latencies
	requests atomic.Uint64
	bytes    atomic.Uint64
	syncs    signal.Latencies
}

// changed counts what a commit has made of items.
func (c *commitFigures) changed(r *request) {
	for _, ch := range r.changes {
		switch ch.kind {
		case putItem, mergeItem:
			c.put.Add(1)
		case deleteItem:
			if ch.found {
				c.deleted.Add(1)
			}
		}
	}
}

// committed counts a commit of some requests that began at a time.
func (c *commitFigures) committed(tx *tx, taken []*request, began time.Time) {
	c.commits.Since(began)
	c.bytes.Add(uint64(tx.batch.Len()))
	if tx.sync {
		c.syncs.Observe(tx.batch.CommitStats().CommitWaitDuration)
	}
	for _, r := range taken {
		if r.err == nil {
			c.requests.Add(1)
			c.changed(r)
		}
	}
}
