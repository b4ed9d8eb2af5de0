package state

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A flight is a transaction between the committer and its answers. The committer fills and launches it. Then
// the store has the batch in memory and syncs its log, while the committer goes on with the next transaction.
// land waits for the sync, shows the view, and answers. Flights finish in the order of their commits.
//
// So the committer, with its memory and its reads from the store, is ahead of readers by the commits in
// flight. Two rules follow. A refused write is answered after the flights before it: the reason for the
// refusal, such as another item under its key, is then durable and readable. An operation (any request but a
// write) begins when nothing is in flight, and finishes before the next request.
type flight struct {
	requests  []*Request // to be answered, including the refused ones
	operation bool       // the only request is an operation
	began     time.Time  // when the committer took up the first request
	bytes     int64      // estimate of what the writes store; part of Committer.aloftBytes

	// Tx.commit sets these. Without a commit, batch and view are nil.
	batch   *pebble.Batch     // the store has it; land closes it
	sync    bool              // the store is syncing it: call SyncWait before anything else
	view    *View             // the state after the commit; readers do not have it yet
	changed []*CollectionView // the collections that have changed in view
}

// maxAloft bounds the flights that wait behind the one being synced. They share the next sync. With a higher
// bound a transaction would take fewer requests, and each transaction has a cost of its own.
const maxAloft = 1

// launch hands a flight to landAll. It finishes an operation itself, and every flight under NoSync: nothing
// else is in flight then.
func (c *Committer) launch(f *flight) {
	c.aloftBytes.Add(f.bytes)
	if f.operation || c.noSync {
		c.land(f)
		return
	}
	c.aloft.Add(1)
	c.flights <- f
}

// landAll finishes flights until the committer has ended.
func (c *Committer) landAll() {
	defer close(c.finished)
	for f := range c.flights {
		c.land(f)
		c.aloft.Done()
	}
}

// land waits until a flight is durable, if required, shows its view, and answers its requests. If the
// database has failed, by this sync or earlier, land drops the view, readers keep the old one, and all
// requests get ErrFailed.
func (c *Committer) land(f *flight) {
	defer func() {
		for _, r := range f.requests {
			close(r.done)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			c.failAll(f, fmt.Errorf("panic at the end of a commit: %v\n%s", p, debug.Stack()))
		}
	}()
	if f.sync {
		if err := f.batch.SyncWait(); err != nil {
			c.Log.Fail(err)
		}
	}
	c.aloftBytes.Add(-f.bytes)
	if f.operation && f.batch == nil { // the operation has its own error, whatever has failed
		return
	}
	// Pebble tells most failures only to its logger.
	if failed := c.Log.Failed.Load(); failed != nil {
		c.failAll(f, *failed)
		if f.view != nil {
			f.view.Release()
		}
	} else if f.view != nil {
		c.ended(f.view, f.changed, f.sync)
		c.Figures.committed(f)
	}
	if f.batch != nil {
		_ = f.batch.Close() // the store has copied it: there is no error
	}
}

// failAll fails the database, unless it has failed before, and all requests of a flight.
func (c *Committer) failAll(f *flight, err error) {
	c.Log.Fail(err)
	for _, r := range f.requests {
		r.err = c.Log.Err()
	}
}
