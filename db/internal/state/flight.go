package state

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A flight is a transaction on its way from the committer to the answers. The committer fills
// it and launches it. From then on the store has the batch in memory, and is writing and
// syncing its log; the committer goes on with the next transaction. land waits for the sync,
// shows the view, and answers. Flights land in the order of their commits.
//
// So the committer, with what it has in memory and reads from the store, is ahead of what
// readers see, by the flights that have not landed. Two rules follow. A write that is refused
// lands behind the flights before it: what has refused it, such as another item under its key,
// is durable, and can be read, when its caller hears. And an operation, which is any request
// but a write, begins when all flights have landed, and lands before the next request.
type flight struct {
	requests  []*Request // to be answered, also those that were refused
	operation bool       // the only request is an operation
	began     time.Time  // when the committer took up the first request
	bytes     int64      // estimate of what the writes store; part of Committer.aloftBytes

	// Set by Tx.commit. Where nothing is committed batch and view are nil.
	batch   *pebble.Batch     // that the store has; land closes it
	sync    bool              // the store has been asked to sync it: SyncWait comes before anything else
	view    *View             // the state that the commit leaves; readers do not have it yet
	changed []*CollectionView // the collections that have changed in view
}

// maxAloft is how many flights may wait behind the one whose sync is awaited. They share the
// next sync. With more of them the committer would take fewer requests at a time, and each
// transaction has a cost of its own.
const maxAloft = 1

// launch hands a flight over to landAll. It lands an operation itself, and all under NoSync:
// nothing else is in flight then.
func (c *Committer) launch(f *flight) {
	c.aloftBytes.Add(f.bytes)
	if f.operation || c.noSync {
		c.land(f)
		return
	}
	c.aloft.Add(1)
	c.flights <- f
}

// landAll lands flights until the committer has ended.
func (c *Committer) landAll() {
	defer close(c.finished)
	for f := range c.flights {
		c.land(f)
		c.aloft.Done()
	}
}

// land waits until a flight is durable, where it has to be, shows its view to readers, and
// answers its requests. If the database has failed, by this sync or by anything before it, the
// view is dropped, readers go on seeing what they saw, and all of the requests get ErrFailed.
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
	if f.operation && f.batch == nil { // its error is its own, whatever has failed
		return
	}
	// Pebble tells its logger of most failures, and not us.
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
		_ = f.batch.Close() // which the store has copied: there is no error
	}
}

// failAll fails the database, if it has not failed before, and all requests of a flight.
func (c *Committer) failAll(f *flight, err error) {
	c.Log.Fail(err)
	for _, r := range f.requests {
		r.err = c.Log.Err()
	}
}
