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

// maxTxBytes bounds the bytes of the items in one commit, so that no writer waits long. A single request may
// be larger.
const maxTxBytes = 64 << 20

// errNextTx answers a write that has no room in the transaction.
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

// commitTx commits first in one transaction with the writes that wait behind it, and launches them as one
// flight. They are answered when it is durable. It may take a request from the queue that cannot join the
// transaction; it returns that request, to be first in the next transaction, or nil.
//
// Operations, all requests but writes, run alone: as first, and nothing joins them. A write that is invalid
// or not admitted gets its error, and the others go on. A later error, or a panic, fails the database, and
// all requests of the transaction get ErrFailed.
func (c *Committer) commitTx(first *Request) (next *Request) {
	f := &flight{operation: first.kind != requestWrites, began: time.Now()}
	if f.operation {
		c.aloft.Wait()
	}
	defer func() {
		// A panic here, for example in the storage engine, must not crash the host. The store may still use
		// the batch, so it is not closed.
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
				next, f.requests = r, f.requests[:len(f.requests)-1] // the next transaction resolves it again, against this commit
				r = nil
				continue
			}
		}
		if r.kind != requestWrites || bytes > maxTxBytes {
			break
		}
		// Writers that were answered together mostly write again: give them time to queue.
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
	if applied == 0 { // all were refused, or the operation commits elsewhere or not at all
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

// paced waits for the store at most twice a transaction: once for writes, and once for requests that free
// disk space, which wait for less.
type paced struct {
	c     *Committer
	asked [2]bool  // by kind: 1 for requests that free space
	err   [2]error // the answer, where asked
}

// keepUp calls Committer.keepUp the first time for this kind of request, and then repeats its answer.
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

// yield runs the goroutines that have just been answered. Many of them write again at once; without yielding,
// each sync would serve only half of the writers. If yielding takes more than a millisecond, because the
// processors are busy, yield does nothing for sixteen times as long, so commits do not wait for searches.
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

// commit applies the transaction to the store, in one batch, and records the remaining steps in the flight.
// With sync the store begins to sync the batch; f.batch.SyncWait waits for that. After an error the state of
// the store is unknown: the caller fails the database.
//
// ApplyNoSyncWait returns when the batch can be read, so the next transaction resolves against it.
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

// finish adds to the batch the changes that the transaction has collected: blocks, layers, postings, the
// counters of changed collections, and the number of the commit. One batch holds them all, so a crash leaves
// the whole commit or nothing.
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

// maxSpare bounds the block edits kept for the next transaction. Each takes 6 KiB, most of what writing one
// item would otherwise allocate.
const maxSpare = 16

// blockEdit returns an empty edit of a block, a spare one if possible.
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

// maxEdits bounds the edits of one block that wait to be merged. A read merges every edit that the storage
// engine has not merged yet, so a block that gets items one at a time is rewritten whole now and then.
// Committer.edits counts edits since a block was last written whole; it is empty after opening.
const maxEdits = 16

// finishBlock adds a block edit to the batch: as the whole block if it is fresh or maxEdits edits wait,
// otherwise as an edit that Pebble merges.
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
