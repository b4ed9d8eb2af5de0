package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// The Committer is the one goroutine that changes the database. It takes all
// waiting requests, assigns rows and code numbers, reads what they replace, and
// commits one Pebble batch, so that concurrent writers share one sync. Then it
// publishes the new view and answers.
//
// A request is applied whole or not at all: first it is resolved, which reads all
// that it needs from the store and finds all that can be wrong with it, and then
// applied, which only writes to memory and the batch. An error in between those
// would mean that what is in memory cannot be trusted any more, and the database
// would fail as after a failed write.
//
// Submit and what calls it (Do, Free, Load, Look, Show) may be called by any goroutine but the
// committer. All else here runs in the committer, or before Run starts it and after End has
// waited for it.
type Committer struct {
	// The store and its helpers; set by Database.Open and not changed.
	Store    *pebble.DB
	Log      *store.Log                               // after its first failure every request is refused
	Admit    func(bytes int64, frees bool) error      // Engine.Admit: is there room on the disk?
	keepUp   func(frees bool) error                   // Engine.KeepUp: waits until the store may take another commit
	fullDisk func(error) error                        // Engine.FullDisk: words an error of the operating system
	Tables   func() *store.Tables                     // for the next commit; tables for CommitTables
	noSync   bool                                     // Options.NoSync: writes need not be durable when they are answered
	readOnly bool                                     // only Show is possible
	keeper   *store.Keeper                            // hears of durable commits; nil: there is none. Set by Run
	current  func(v *View, changed []*CollectionView) // Database.setCurrent: makes v the view that new readers get

	queue    chan *Request // from Submit; End closes it
	finished chan struct{} // closed when the committer has ended
	Figures  commitFigures // for db.Activity; any goroutine may read them

	last  int       // requests of the transaction before: so many may come again at once, see yield
	hurry time.Time // until when not to yield

	// What is in memory. Only the committer touches it.
	States   map[uint32]*CollectionState // all collections, by id
	dirty    []*CollectionState          // changed since the last view, each once (Touch); also those dropped since
	Shown    Catalogue                   // of the last view
	Sequence uint64                      // number of the last commit
	edits    map[string]int              // by key of a block: edits since it was last written whole, see maxEdits
	layers   *layerCounts                // likewise of sets of rows, see MaxLayers
}

// maxTxBytes bounds the bytes of the items that share one commit, so that none waits long. A
// single request may be larger.
const maxTxBytes = 64 << 20

// Submit hands a request to the committer and waits until it is committed and readers see it;
// durably, but for writes under NoSync. A context that ends before the committer has taken the
// request leaves the database as it was; after that the outcome is awaited, whatever the
// context. The request is the committer's until Submit returns. The queue must be open:
// callers have entered Database.Guard, or end before End.
func (c *Committer) Submit(ctx context.Context, r *Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.done = make(chan struct{})
	c.Figures.Waiting.Add(1)
	defer c.Figures.Waiting.Add(-1)
	select {
	case c.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-r.done
	return r.err
}

// run is the committer: it takes requests until End closes the queue.
func (c *Committer) run() {
	defer close(c.finished)
	for r := range c.queue {
		for r != nil {
			r = c.commitTx(r)
		}
	}
}

// commitTx commits first, and in the same transaction the writes that wait behind it. It
// answers all of them, but for one request that it has taken from the queue and that does not
// go with the others: that it returns, to be the first of the next transaction.
//
// Operations, which are all requests but writes, run alone: as first, and nothing joins them.
// A write whose Resolve or Admit fails is answered with its error, and the others go on. An
// error after that, or a panic, fails the database, and all of them get ErrFailed.
func (c *Committer) commitTx(first *Request) (next *Request) {
	var taken []*Request // to be answered when this returns
	defer func() {
		for _, r := range taken {
			close(r.done)
		}
	}()
	failAll := func(err error) {
		c.Log.Fail(err)
		for _, r := range taken {
			r.err = c.Log.Err()
		}
	}
	defer func() {
		// A panic here, of the storage engine say, must not take the host down.
		if p := recover(); p != nil {
			failAll(fmt.Errorf("panic in the committer: %v\n%s", p, debug.Stack()))
		}
	}()

	began := time.Now()
	tx := newTx(c)
	defer tx.Batch.Close()
	bytes, applied := 0, 0 // estimated bytes of writes; requests that have written to tx
	kv := paced{c: c}
	for r := first; r != nil; {
		taken = append(taken, r) // before anything can panic, so that it is answered
		if r.err = c.Log.Err(); r.err == nil && r.kind.commits() {
			r.err = kv.keepUp(r.frees())
		}
		if r.err == nil && c.readOnly && r.kind != requestShows {
			r.err = fault.ErrReadOnly // package db words it before it comes to this
		}
		if r.err == nil && r.kind == requestWrites {
			var size int
			if size, r.err = tx.Resolve(r); r.err == nil {
				r.err = c.Admit(store.WrittenTwice*int64(bytes+size), r.onlyDeletes())
			}
			if r.err == nil {
				if bytes += size; applied > 0 && bytes > maxTxBytes {
					next = r // it is resolved anew against what this transaction commits
					taken = taken[:len(taken)-1]
					break
				}
			}
		}
		if r.err == nil && (r.kind == requestStores || r.kind == requestFrees) {
			r.err = c.Admit(store.WrittenTwice*int64(r.bytes), r.kind == requestFrees)
		}
		switch {
		case r.err != nil:
		case r.kind != requestWrites:
			if r.err = r.run(tx); r.err == nil && r.kind.commits() && !tx.Empty {
				applied++
			}
			if r.err == nil && r.kind == requestShows {
				c.publish()
			}
		default:
			if err := tx.Apply(r); err != nil {
				failAll(err)
				return nil
			}
			applied++
		}
		if r.kind != requestWrites || bytes > maxTxBytes {
			break
		}
		// Those who were answered together mostly come again: give them the time to queue.
		if len(taken) < c.last && len(c.queue) == 0 {
			c.yield()
		}
		select {
		case r = <-c.queue: // nil once the queue is closed
			if r != nil && r.kind != requestWrites {
				next, r = r, nil
			}
		default:
			r = nil
		}
	}
	c.last = len(taken)
	if applied == 0 { // all were refused, or the operation has committed by itself or not at all
		return next
	}
	// Operations are always synced, whatever Options.NoSync says.
	tx.sync = !c.noSync || first.kind != requestWrites
	if err := tx.commit(); err != nil {
		failAll(err)
		return next
	}
	c.Figures.committed(tx, taken, began)
	return next
}

// paced waits for the store at most once a transaction for each of two kinds of requests:
// writes, and requests that free disk space, which wait for less.
type paced struct {
	c     *Committer
	asked [2]bool  // by kind: 1 for requests that free space
	err   [2]error // the answer, where asked
}

// keepUp is Committer.keepUp, or its answer to this kind of request in this transaction.
func (p *paced) keepUp(frees bool) error {
	i := 0
	if frees {
		i = 1
	}
	if !p.asked[i] {
		p.asked[i], p.err[i] = true, p.c.keepUp(frees)
	}
	return p.err[i]
}

// yield lets the goroutines run that have just been answered. Many of them write again at
// once, and without them each sync would serve half of the writers in turn. If yielding takes
// more than a millisecond, as others keep the processors busy, it does nothing for sixteen
// times as long, so that commits do not wait for searches.
func (c *Committer) yield() {
	start := time.Now()
	if start.Before(c.hurry) {
		return
	}
	runtime.Gosched()
	if took := time.Since(start); took > time.Millisecond {
		c.hurry = start.Add(16 * took)
	}
}

// commit writes the transaction to the store, in one batch with one sync, and publishes what
// it changed. After an error nobody knows what the store has: the caller fails the database.
func (tx *Tx) commit() error {
	c := tx.Committer
	if err := tx.finish(); err != nil {
		return err
	}
	if err := tx.Batch.Commit(&pebble.WriteOptions{Sync: tx.sync}); err != nil {
		return err
	}
	if err := c.Log.Err(); err != nil {
		return err // Pebble has told its logger instead of us
	}
	c.committed(tx.sync)
	return nil
}

// CommitTables has the store take over the tables that tasks make, of about so many bytes, as
// one commit: that is how an operation of Load commits. The tables have to hold all that a Tx
// would write: the records, the counters of the collections that have changed (AllCounters)
// and the sequence (Tables.WriteSequence). applied then brings what is in memory to the same,
// calls Touch, and cannot fail. With an error applied has not been called, and the store is as
// it was, or the database has failed.
func (c *Committer) CommitTables(ctx context.Context, t *store.Tables, bytes int64, tasks []work.Task, applied func()) error {
	if err := c.keepUp(false); err != nil {
		return err
	}
	if err := c.Admit(bytes, false); err != nil {
		return err
	}
	if err := t.Take(ctx, tasks...); err != nil {
		return fault.Annotate(c.fullDisk(err), "bulk load")
	}
	applied()
	c.committed(true)
	return nil
}

// committed is the one place that ends a commit, in whatever way it came into the store: it
// counts the commit, tells the side file if it is durable, and shows it to readers.
func (c *Committer) committed(durable bool) {
	c.Sequence++
	if durable {
		c.keeper.Reached(c.Sequence)
	}
	c.publish()
}

// Touch notes that a collection has changed: the commit under way stores its counters, and the
// next view shows it. A request that changes a CollectionState, or a SpaceState or CodeSet of
// it, has to call it, or readers go on seeing what was before.
func (c *Committer) Touch(s *CollectionState) {
	if !s.dirty {
		s.dirty = true
		c.dirty = append(c.dirty, s)
	}
}

// publish makes a view of the present state the current one. As no other goroutine writes to
// the store, the snapshot that it takes is of the same commit as what is in memory. It costs
// that snapshot, and for each collection that has changed a CollectionView and a path in the
// maps of the catalogue.
func (c *Committer) publish() {
	changed := make([]*CollectionView, 0, len(c.dirty))
	for _, s := range c.dirty {
		if c.States[s.ID] == nil {
			c.Shown = c.Shown.without(s.ID)
			continue
		}
		changed = append(changed, s.publish())
	}
	c.Shown = c.Shown.With(changed...)
	clear(c.dirty) // so that what is dropped can go
	c.dirty = c.dirty[:0]
	v := &View{Snap: c.Store.NewSnapshot(), Sequence: c.Sequence, Catalogue: c.Shown}
	v.Refs.Store(1)
	c.current(v, changed)
}

// finish adds to the batch what the transaction has collected on the side: blocks, layers,
// postings, the counters of all collections that have changed, and the number of the commit.
// All of it is then in the one batch, so that a crash leaves all of the commit or nothing.
func (tx *Tx) finish() error {
	for key, edit := range tx.blocks {
		if err := tx.finishBlock([]byte(key), edit); err != nil {
			return err
		}
	}
	if err := tx.finishLayers(); err != nil {
		return err
	}
	if err := tx.finishPostings(); err != nil {
		return err
	}
	for _, s := range tx.Committer.dirty {
		if tx.Committer.States[s.ID] == nil {
			continue
		}
		n := s.AllCounters()
		if err := tx.Batch.Set(codec.CollectionKey(codec.KindCounters, s.ID), n.Append(nil), nil); err != nil {
			return err
		}
		s.FreshRow = n.NextRow
		for i, sp := range s.Spaces {
			sp.fresh = false
			for j, set := range sp.Sets {
				set.FreshCode = n.Spaces[i].Sets[j].NextCode
			}
		}
	}
	return tx.Batch.Set(codec.DatabaseKey(codec.RecordSequence), binary.BigEndian.AppendUint64(nil, tx.Committer.Sequence+1), nil)
}

// maxEdits is how many edits of one block may wait to be merged. A read merges all that the
// storage engine has not merged yet, so that a block to which items come one at a time is
// written whole now and then. Committer.edits counts them, with an entry for each block that
// has been edited and not written whole; it begins empty after opening.
const maxEdits = 16

// finishBlock adds the edit of a block to the batch: as the whole block where it is fresh or
// maxEdits have been merged into it, else as an edit that Pebble merges.
func (tx *Tx) finishBlock(key []byte, edit *blockEdit) error {
	edits := tx.Committer.edits
	if edit.fresh {
		return tx.Batch.Set(key, edit.Append(nil, true), nil)
	}
	if edits[string(key)]++; edits[string(key)] <= maxEdits {
		return tx.Batch.Merge(key, edit.Append(nil, false), nil)
	}
	delete(edits, string(key))
	base, err := record.Get(tx.Committer.Store, key)
	if err != nil {
		return err
	}
	if base != nil {
		b, err := codec.DecodeBlock(base)
		if err != nil {
			return fault.Corrupt(err, "block %x", key)
		}
		edit.Under(b)
	}
	return tx.Batch.Set(key, edit.Append(nil, true), nil)
}
