package state

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// The Committer is the one goroutine that changes the database. It takes all waiting requests, assigns rows
// and code numbers, reads the records that they replace, and commits one Pebble batch, so concurrent writers
// share one sync. During that sync it prepares the next batch. A second goroutine, finishAll, waits for the
// syncs and, commit by commit, shows the view to readers and answers the requests: see pendingCommit.
//
// A request is applied whole or not at all. First it is resolved: that reads all it needs from the store and
// finds every possible error. Then it is applied: that only writes to memory and the batch. An error there
// would leave untrustworthy memory, so it fails the database, as a failed write does.
//
// Any goroutine but the committer may call Submit and its callers (Do, Free, Load, Look, Show). Everything
// else here runs in the committer, or before Run starts it, or after End has waited for it.
type Committer struct {
	// The store and its helpers, set by Database.Open and then constant.
	kv    *pebble.DB
	Log   *store.Log                          // after its first failure every request is refused
	Admit func(bytes int64, frees bool) error // Engine.Admit: reports whether the disk has room
	// Engine.KeepUp: waits until the store may take another commit
	keepUp   func(frees bool) error
	fullDisk func(error) error    // Engine.FullDisk: words an error of the operating system
	Tables   func() *store.Tables // tables for the next commit, for CommitTables
	noSync   bool                 // Options.NoSync: answer writes before they are durable
	readOnly bool                 // only Show is possible

	rerankBytes int64 // Database.rerankBytes

	keeper  *store.Keeper                            // hears of durable commits; nil: none. Set by Run
	current func(v *View, changed []*CollectionView) // Database.setCurrent: gives new readers v

	queue         chan *Request       // from Submit; End closes it
	pending       chan *pendingCommit // from handOver to finishAll; run closes it
	inFlight      sync.WaitGroup      // counts the commits that finishAll has not finished
	inFlightBytes atomic.Int64        // their bytes, before their sync
	finished      chan struct{}       // finishAll closes it when the committer has ended
	Figures       commitFigures       // for report.Activity; any goroutine may read them

	tablesUntil atomic.Int64 // time in nanoseconds until which more tables may arrive, see settle

	records record.Writer      // of the current Tx
	spare   []*codec.BlockEdit // of earlier transactions, for reuse; at most maxSpare

	last  int       // number of requests in the transaction before, see yield
	hurry time.Time // do not yield before this time

	// The state in memory. It is ahead of readers by the commits in flight. Only the committer touches it.
	States   map[uint32]*CollectionState // all collections, by id
	dirty    []*CollectionState          // changed or dropped since the last view, each once (Touch)
	shown    Catalogue                   // of the last view
	sequence uint64                      // number of the last commit; only committed counts it
	// by key of a block: edits since it was last written whole, see maxEdits
	edits  map[string]int
	layers *layerCounts // the same for sets of rows, see MaxLayers
}

// Submit hands a request to the committer and waits until it is committed and visible, and durable, unless
// NoSync allows less for writes. If the context ends before the committer takes the request, the database is
// unchanged; after that Submit waits for the outcome, whatever the context. The committer owns the request
// until Submit returns. The queue must be open: callers have entered Database.Guard, or end before End.
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

// CommitTables makes tasks write tables, of about so many bytes, and has the store ingest them as one commit;
// an operation of Load commits this way. The tables hold all that a Tx would write: the records, the counters
// of changed collections (AllCounters) and the sequence (Tables.WriteSequence). Then applied brings memory to
// the same state and calls Touch; it cannot fail. On an error applied has not been called, and the store is
// unchanged or the database has failed. The caller adds context to the error.
func (c *Committer) CommitTables(ctx context.Context, t *store.Tables, bytes int64, tasks []work.Task,
	applied func()) error {
	began := time.Now()
	defer func() {
		c.tablesUntil.Store(time.Now().Add(min(restPerTables*time.Since(began), maxTablesRest)).UnixNano())
	}()
	if err := c.keepUp(false); err != nil {
		return err
	}
	if err := c.Admit(bytes, false); err != nil {
		return err
	}
	if err := t.Take(ctx, tasks...); err != nil {
		return c.fullDisk(err)
	}
	applied()
	v, changed := c.committed()
	c.ended(v, changed, true)
	return nil
}

// committed counts a commit of either kind and returns the view that shows it, for ended.
func (c *Committer) committed() (v *View, changed []*CollectionView) {
	c.sequence++
	return c.view()
}

// ended is the one place that finishes a commit: it tells the side file if the commit is durable, and shows
// the view to readers. Between committed and ended the commit is in flight.
func (c *Committer) ended(v *View, changed []*CollectionView, durable bool) {
	if durable {
		c.keeper.Reached(v.Sequence)
	}
	c.current(v, changed)
}

// Durable tells the side file that all commits are durable, also those under NoSync. Close calls it after
// End, when the store has been closed without an error.
func (c *Committer) Durable() { c.keeper.Reached(c.sequence) }

// Sequence returns the number of the last commit.
func (c *Committer) Sequence() uint64 { return c.sequence }

// Reader returns the store, to be read as of the last commit.
func (c *Committer) Reader() pebble.Reader { return c.kv }

// Named returns the collection with a name, or nil.
func (c *Committer) Named(name string) *CollectionState {
	if id, ok := c.shown.IDs.Get(name); ok {
		return c.States[id]
	}
	return nil
}

// Touch marks a collection as changed: the current commit stores its counters, and the next view shows it. A
// request must call it after changing a CollectionState, SpaceState or CodeSet, or readers see the old state.
func (c *Committer) Touch(s *CollectionState) {
	if !s.dirty {
		s.dirty = true
		c.dirty = append(c.dirty, s)
	}
}

// view returns a view of the present state, and the collections that have changed in it. No other goroutine
// writes to the store, so the snapshot and the memory are of the same commit. It costs the snapshot, and for
// each changed collection a CollectionView and a path in the maps of the catalogue. Readers see the view
// after ended; release a view that is not shown.
func (c *Committer) view() (v *View, changed []*CollectionView) {
	changed = make([]*CollectionView, 0, len(c.dirty))
	for _, s := range c.dirty {
		if c.States[s.ID] == nil {
			c.shown = c.shown.without(s.ID)
			continue
		}
		changed = append(changed, s.publish())
	}
	c.shown = c.shown.With(changed...)
	clear(c.dirty) // frees dropped collections
	c.dirty = c.dirty[:0]
	v = &View{Snap: c.kv.NewSnapshot(), Sequence: c.sequence, Catalogue: c.shown}
	v.Refs.Store(1)
	return v, changed
}

// A Request is what one caller asks of the committer: either changes, which may share a commit with other
// requests, or an operation that runs alone. The caller hands it to Committer.Submit. Until Submit returns
// the committer owns it, with everything it points to.
type Request struct {
	kind    requestKind     // requestWrites, unless a function below made it
	Changes []*Change       // of requestWrites: applied in this order, all or none
	Marks   []record.Mark   // of requestWrites: stored with the changes
	run     func(*Tx) error // of the other kinds
	bytes   int             // of requestStores: bytes that the operation stores, roughly, if they may be many

	err  error         // the answer, set before done is closed
	done chan struct{} // made by Submit; closed when the request has been answered
}

// A requestKind says what a request may do to the store and to readers, and so what it waits for. The Tx
// commits what operations up to requestFrees write to it.
type requestKind byte

const (
	requestWrites requestKind = iota // changes of items, which share a commit with others
	requestStores                    // an operation in a commit of its own
	// an operation that frees disk space later: less room has to be left for it
	requestFrees
	// an operation that gives the store whole tables, and asks for room itself, see CommitTables
	requestLoads
	requestLooks // an operation that stores nothing and changes nothing visible
	// an operation that stores nothing and changes what readers see; allowed when read-only
	requestShows
)

// commits reports whether the transaction is committed after the operation.
func (k requestKind) commits() bool { return k <= requestFrees }

// onlyDeletes reports whether all changes are deletions, which reduce the data. Their marks are small.
func (r *Request) onlyDeletes() bool {
	return r.kind == requestWrites && len(r.Changes) > 0 &&
		!slices.ContainsFunc(r.Changes, func(ch *Change) bool { return ch.Kind != DeleteItem })
}

// frees reports whether the request frees disk space, later.
func (r *Request) frees() bool { return r.kind == requestFrees || r.onlyDeletes() }

// Do runs f alone, in the committer, and commits its writes. bytes estimates them, and may be 0 if they are
// few. f changes memory, writes to the Tx, and calls Touch. f must fail before its first change; Do returns
// that error unchanged. A panic fails the database. If f sets Tx.Empty, there is no commit. When Do returns,
// the commit is visible and durable, whatever Options.NoSync says. A long f keeps all writers waiting.
func (c *Committer) Do(ctx context.Context, bytes int, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestStores, bytes: bytes, run: f})
}

// admitWrites asks whether the disk has room for a commit of so many bytes of writes, r the last of them. It
// adds the bytes in flight, which the log on disk may not include yet.
func (c *Committer) admitWrites(bytes int, r *Request) error {
	return c.Admit(store.WrittenTwice*(int64(bytes)+c.inFlightBytes.Load()), r.onlyDeletes())
}

// Free is Do for operations that free disk space, such as dropping a space. They are allowed on a full
// disk with only the last of the reserve left.
func (c *Committer) Free(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestFrees, run: f})
}

// Load runs f alone. f commits by CommitTables, once or not at all; its writes to the Tx are lost.
func (c *Committer) Load(ctx context.Context, f func(*Tx) error) error {
	return c.Submit(ctx, &Request{kind: requestLoads, run: f})
}

// Look runs f between two commits. f may read the committer's own state, and change state that is neither
// stored nor visible, such as CollectionState.Changed.
func (c *Committer) Look(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestLooks, run: func(*Tx) error { return f() }})
}

// Show runs f between two commits and then publishes a view, so that readers see the changes of f (with
// Touch) to memory alone, such as tables of codes. It is allowed in a read-only database.
func (c *Committer) Show(ctx context.Context, f func() error) error {
	return c.Submit(ctx, &Request{kind: requestShows, run: func(*Tx) error { return f() }})
}

// maxTxBytes bounds the bytes of the items in one commit, so that no writer waits long. A single request may
// be larger.
const maxTxBytes = 64 << 20

// errNextTx answers a write that has no room in the transaction.
var errNextTx = errors.New("the transaction is full")

// run is the committer: it takes requests until End closes the queue.
func (c *Committer) run() {
	go c.finishAll()
	defer close(c.pending)
	for r := range c.queue {
		for r != nil {
			r = c.commitTx(r)
		}
	}
}

// commitTx commits first in one transaction with the writes that wait behind it, and hands it over. They are
// answered when it is durable. It may take a request from the queue that cannot join the transaction; it
// returns that request, to be first in the next transaction, or nil.
//
// Operations, all requests but writes, run alone: as first, and nothing joins them. A write that is invalid
// or not admitted gets its error, and the others go on. A later error, or a panic, fails the database, and
// all requests of the transaction get ErrFailed.
func (c *Committer) commitTx(first *Request) (next *Request) {
	f := &pendingCommit{operation: first.kind != requestWrites, began: time.Now()}
	if f.operation {
		c.inFlight.Wait()
	}
	defer func() {
		// A panic here, for example in the storage engine, must not crash the host. The store may still use
		// the batch, so it is not closed.
		if p := recover(); p != nil {
			c.failAll(f, fmt.Errorf("panic in the committer: %v\n%s", p, debug.Stack()))
		}
		c.handOver(f)
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
				// the next transaction resolves it again, against this commit
				next, f.requests = r, f.requests[:len(f.requests)-1]
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

// commit applies the transaction to the store, in one batch, and records the remaining steps in f.
// With sync the store begins to sync the batch; f.batch.SyncWait waits for that. After an error the state of
// the store is unknown: the caller fails the database.
//
// ApplyNoSyncWait returns when the batch can be read, so the next transaction resolves against it.
func (tx *Tx) commit(f *pendingCommit, sync bool) error {
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

// A pendingCommit is a transaction between the committer and its answers. The committer fills it and hands it
// over. Then the store has the batch in memory and syncs its log, while the committer goes on with the next
// transaction. finish waits for the sync, shows the view, and answers. Pending commits finish in the order of
// their commits.
//
// So the committer, with its memory and its reads from the store, is ahead of readers by the commits in
// flight. Two rules follow. A refused write is answered after the commits before it: the reason for the
// refusal, such as another item under its key, is then durable and readable. An operation (any request but a
// write) begins when nothing is in flight, and finishes before the next request.
type pendingCommit struct {
	requests  []*Request // to be answered, including the refused ones
	operation bool       // the only request is an operation
	began     time.Time  // when the committer took up the first request
	bytes     int64      // estimate of what the writes store; part of Committer.inFlightBytes

	// Tx.commit sets these. Without a commit, batch and view are nil.
	batch   *pebble.Batch     // the store has it; finish closes it
	sync    bool              // the store is syncing it: call SyncWait before anything else
	view    *View             // the state after the commit; readers do not have it yet
	changed []*CollectionView // the collections that have changed in view
}

// maxPending bounds the commits that wait behind the one being synced. They share the next sync. With a
// higher bound a transaction would take fewer requests, and each transaction has a cost of its own.
const maxPending = 1

// handOver hands a commit to finishAll. It finishes an operation itself, and every commit under NoSync:
// nothing else is in flight then.
func (c *Committer) handOver(f *pendingCommit) {
	c.inFlightBytes.Add(f.bytes)
	if f.operation || c.noSync {
		c.finish(f)
		return
	}
	c.inFlight.Add(1)
	c.pending <- f
}

// finishAll finishes commits until the committer has ended.
func (c *Committer) finishAll() {
	defer close(c.finished)
	for f := range c.pending {
		c.finish(f)
		c.inFlight.Done()
	}
}

// finish waits until a commit is durable, if required, shows its view, and answers its requests. If the
// database has failed, by this sync or earlier, finish drops the view, readers keep the old one, and all
// requests get ErrFailed.
func (c *Committer) finish(f *pendingCommit) {
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
	c.inFlightBytes.Add(-f.bytes)
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

// failAll fails the database, unless it has failed before, and all requests of a commit.
func (c *Committer) failAll(f *pendingCommit, err error) {
	c.Log.Fail(err)
	for _, r := range f.requests {
		r.err = c.Log.Err()
	}
}

// Write commits changes and marks together, all or none. It waits for the codes of the collections, encodes
// the items, and submits them to the committer. It counts as one write in the figures and has a span. The
// caller has entered the Guard.
func (d *Database) Write(ctx context.Context, changes []*Change, marks []record.Mark) error {
	call := signal.NewCall()
	err := d.Prepare(ctx, changes)
	if err == nil {
		err = d.Committer.Submit(ctx, &Request{Changes: changes, Marks: marks})
	}
	d.Wrote(call, err)
	return err
}

// Prepare waits until the codes of the changed collections are in memory, and encodes the items to put, on
// all cores if they are many. It uses the present models. The committer encodes again if these have changed
// by then.
func (d *Database) Prepare(ctx context.Context, changes []*Change) error {
	var waits []*Loading
	err := d.Read(func(v *View) error {
		for id := range collectionsOf(changes) {
			if cv, ok := v.Collections.Get(id); ok {
				waits = cv.AppendLoading(waits)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := WaitForAll(ctx, waits); err != nil {
		return err
	}
	return d.Read(func(v *View) error {
		for id, puts := range collectionsOf(changes) {
			cv, ok := v.Collections.Get(id)
			if !ok || cv.CodesOnly() { // the committer reports a collection that is gone
				continue
			}
			for _, ch := range puts {
				ch.Encs, ch.EncodedBy = nil, cv.Labels
			}
			for _, sp := range cv.Spaces {
				if err := Encode(ctx, puts, sp.Space, cv.Labels.Lookup); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// collectionsOf yields the collections of changes, with the puts into each.
func collectionsOf(changes []*Change) iter.Seq2[uint32, []*Change] {
	return func(yield func(uint32, []*Change) bool) {
		other := func(ch *Change) bool { return ch.Collection != changes[0].Collection || ch.Kind != PutItem }
		if len(changes) > 0 && !slices.ContainsFunc(changes, other) { // the usual case
			yield(changes[0].Collection, changes)
			return
		}
		puts := map[uint32][]*Change{}
		for _, ch := range changes {
			all := puts[ch.Collection]
			if ch.Kind == PutItem {
				all = append(all, ch)
			}
			puts[ch.Collection] = all
		}
		for id, all := range puts {
			if !yield(id, all) {
				return
			}
		}
	}
}

// Encode adds the codes of items in a space to the Encs of puts, on all cores if they are many. It does
// nothing for a space without a model. labelIDs returns the ids of labels; several goroutines call it.
func Encode(ctx context.Context, puts []*Change, s *spaces.Space,
	labelIDs func(names []string) []uint32) error {
	if s.Learned == nil {
		return nil
	}
	encs := make([]spaces.Encoding, len(puts))
	err := s.EncodeAll(ctx, work.All(), encs,
		func(i int) ([]model.Vector, []uint32) { return puts[i].Item.Vectors, labelIDs(puts[i].Item.Labels) },
		func(i int, err error) error {
			return fault.OfItem(puts[i].Item.Key, fmt.Errorf("fddhdb: encode: %w", err))
		})
	if err != nil {
		return err
	}
	for i, ch := range puts {
		if ch.Encs == nil {
			ch.Encs = encs[i : i+1 : i+1] // nearly all collections have one space
		} else {
			ch.Encs = append(ch.Encs, encs[i])
		}
	}
	return nil
}

// commitFigures are the figures of the committer since opening. Safe for concurrent use. A commit of tables
// adds to Put at most.
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

// committed counts a pending commit, which also holds refused requests.
func (c *commitFigures) committed(f *pendingCommit) {
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
