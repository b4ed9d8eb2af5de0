package state

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// maxTxBytes bounds the bytes of the items that share one commit, so that none waits long. A
// single request may be larger.
const maxTxBytes = 64 << 20

// errNextTx is the answer to a write that the transaction has no room for.
var errNextTx = errors.New("the transaction is full")

// run is the committer: it takes requests until End closes the queue.
func (c *Committer) run() {
	go c.landAll()
	defer close(c.flights)
	for r := range c.queue {
		for r != nil {
			r = c.commitTx(r)
		}
	}
}

// commitTx commits first, and in the same transaction the writes that wait behind it, and
// launches them as one flight: they are answered when it lands. It returns a request that it
// has taken from the queue and that does not go with the others, to be the first of the next
// transaction, or nil.
//
// Operations, which are all requests but writes, run alone: as first, and nothing joins them.
// A write that is not admitted, or wrong, is answered with its error, and the others go on. An
// error after that, or a panic, fails the database, and all of them get ErrFailed.
func (c *Committer) commitTx(first *Request) (next *Request) {
	f := &flight{operation: first.kind != requestWrites, began: time.Now()}
	if f.operation {
		c.aloft.Wait()
	}
	defer func() {
		// A panic here, of the storage engine say, must not take the host down. The store may
		// still use the batch then, so nobody closes it.
		if p := recover(); p != nil {
			c.failAll(f, fmt.Errorf("panic in the committer: %v\n%s", p, debug.Stack()))
		}
		c.launch(f)
	}()
	tx := newTx(c)
	bytes, applied := 0, 0 // estimated bytes of writes; requests that have written to tx
	kv := paced{c: c}
	for r := first; r != nil; {
		f.requests = append(f.requests, r) // before anything can panic, so that it is answered
		if r.err = c.Log.Err(); r.err == nil && r.kind.commits() {
			r.err = kv.keepUp(r.frees())
		}
		if r.err == nil && c.readOnly && r.kind != requestShows {
			r.err = fault.ErrReadOnly // package db words it before it comes to this
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
				v, changed := c.view()
				c.ended(v, changed, false)
			}
		default:
			r.err = tx.write(func(size int) error {
				if err := c.admitWrites(bytes+size, r); err != nil {
					return err
				}
				if bytes += size; applied > 0 && bytes > maxTxBytes {
					return errNextTx
				}
				return nil
			}, r)
			switch failed := c.Log.Err(); {
			case r.err == nil:
				applied++
			case failed != nil:
				c.failAll(f, failed)
				return nil
			case r.err == errNextTx:
				next, f.requests = r, f.requests[:len(f.requests)-1] // it is resolved anew against what this transaction commits
				r = nil
				continue
			}
		}
		if r.kind != requestWrites || bytes > maxTxBytes {
			break
		}
		// Those who were answered together mostly come again: give them the time to queue.
		if len(f.requests) < c.last && len(c.queue) == 0 {
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
	c.last = len(f.requests)
	if applied == 0 { // all were refused, or the operation has committed by itself or not at all
		_ = tx.Batch.Close()
		return next
	}
	f.bytes = int64(bytes)
	// Operations are always synced, whatever Options.NoSync says.
	if err := tx.commit(f, !c.noSync || f.operation); err != nil {
		c.failAll(f, err)
	}
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

// commit gives the transaction to the store, in one batch, and what is left to do to the flight.
// With sync the store begins to sync the batch, and f.batch.SyncWait waits for that. After an
// error nobody knows what the store has: the caller fails the database.
//
// ApplyNoSyncWait returns when the batch can be read, so that the next transaction is resolved
// against it.
func (tx *Tx) commit(f *flight, sync bool) error {
	c := tx.Committer
	if err := tx.finish(); err != nil {
		return err
	}
	apply := c.kv.Apply
	if sync {
		apply = c.kv.ApplyNoSyncWait
	}
	if err := apply(tx.Batch, &pebble.WriteOptions{Sync: sync}); err != nil {
		return err
	}
	f.batch, f.sync = tx.Batch, sync
	f.view, f.changed = c.committed()
	return nil
}

// finish adds to the batch what the transaction has collected on the side: blocks, layers,
// postings, the counters of all collections that have changed, and the number of the commit.
// All of it is then in the one batch, so that a crash leaves all of the commit or nothing.
func (tx *Tx) finish() error {
	for key, edit := range tx.blocks {
		if err := tx.finishBlock([]byte(key), edit); err != nil {
			return err
		}
		if c := tx.Committer; len(c.spare) < maxSpare {
			c.spare = append(c.spare, edit.BlockEdit)
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
		if err := tx.records.Counters(s.ID, n); err != nil {
			return err
		}
		s.extendRows(s.FreshRow, n.NextRow, tx.Committer.rerankFits())
		s.FreshRow = n.NextRow
		for i, sp := range s.Spaces {
			sp.fresh = false
			sp.Codes.FreshCode = n.Spaces[i].NextCode
		}
	}
	return tx.records.Sequence(tx.Committer.sequence + 1)
}

// maxSpare is how many edits of blocks are kept from one transaction for the next. Each takes
// 6 KiB, most of what a write of one item would else allocate.
const maxSpare = 16

// blockEdit returns an empty edit of a block, a spare one if there is any.
func (c *Committer) blockEdit(width int) *codec.BlockEdit {
	n := len(c.spare) - 1
	if n < 0 {
		return codec.NewBlockEdit(width)
	}
	e := c.spare[n]
	c.spare = c.spare[:n]
	e.Reset(width)
	return e
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
		return tx.records.Block(key, edit.BlockEdit, true)
	}
	if edits[string(key)]++; edits[string(key)] <= maxEdits {
		return tx.records.Block(key, edit.BlockEdit, false)
	}
	delete(edits, string(key))
	base, err := record.Get(tx.Committer.kv, key)
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
	return tx.records.Block(key, edit.BlockEdit, true)
}
