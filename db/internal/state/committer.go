package state

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// The Committer is the one goroutine that changes the database. It takes all waiting requests, assigns rows
// and code numbers, reads the records that they replace, and commits one Pebble batch, so concurrent writers
// share one sync. During that sync it prepares the next batch. A second goroutine, landAll, waits for the
// syncs and, commit by commit, shows the view to readers and answers the requests: see flight.
//
// A request is applied whole or not at all. First it is resolved: that reads all it needs from the store and
// finds every possible error. Then it is applied: that only writes to memory and the batch. An error there
// would leave untrustworthy memory, so it fails the database, as a failed write does.
//
// Any goroutine but the committer may call Submit and its callers (Do, Free, Load, Look, Show). Everything
// else here runs in the committer, or before Run starts it, or after End has waited for it.
type Committer struct {
	// The store and its helpers, set by Database.Open and then constant.
	kv       *pebble.DB
	Log      *store.Log                          // after its first failure every request is refused
	Admit    func(bytes int64, frees bool) error // Engine.Admit: reports whether the disk has room
	keepUp   func(frees bool) error              // Engine.KeepUp: waits until the store may take another commit
	fullDisk func(error) error                   // Engine.FullDisk: words an error of the operating system
	Tables   func() *store.Tables                // tables for the next commit, for CommitTables
	noSync   bool                                // Options.NoSync: answer writes before they are durable
	readOnly bool                                // only Show is possible

	rerankBytes int64 // Database.rerankBytes

	keeper  *store.Keeper                            // hears of durable commits; nil: none. Set by Run
	current func(v *View, changed []*CollectionView) // Database.setCurrent: gives new readers v

	queue      chan *Request  // from Submit; End closes it
	flights    chan *flight   // from launch to landAll; run closes it
	aloft      sync.WaitGroup // counts the flights that landAll has not finished
	aloftBytes atomic.Int64   // bytes of the flights before their sync
	finished   chan struct{}  // landAll closes it when the committer has ended
	Figures    commitFigures  // for db.Activity; any goroutine may read them

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
	edits    map[string]int              // by key of a block: edits since it was last written whole, see maxEdits
	layers   *layerCounts                // the same for sets of rows, see MaxLayers
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
func (c *Committer) CommitTables(ctx context.Context, t *store.Tables, bytes int64, tasks []work.Task, applied func()) error {
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
