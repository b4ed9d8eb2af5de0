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

// The Committer is the one goroutine that changes the database. It takes all
// waiting requests, assigns rows and code numbers, reads what they replace, and
// commits one Pebble batch, so that concurrent writers share one sync. While that
// sync is awaited it prepares the next batch. A second goroutine, landAll, waits for
// the syncs, shows the views to readers and answers, commit by commit: see flight.
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
	kv       *pebble.DB
	Log      *store.Log                          // after its first failure every request is refused
	Admit    func(bytes int64, frees bool) error // Engine.Admit: is there room on the disk?
	keepUp   func(frees bool) error              // Engine.KeepUp: waits until the store may take another commit
	fullDisk func(error) error                   // Engine.FullDisk: words an error of the operating system
	Tables   func() *store.Tables                // for the next commit; tables for CommitTables
	noSync   bool                                // Options.NoSync: writes need not be durable when they are answered
	readOnly bool                                // only Show is possible

	rerankBytes int64 // Database.rerankBytes

	keeper  *store.Keeper                            // hears of durable commits; nil: there is none. Set by Run
	current func(v *View, changed []*CollectionView) // Database.setCurrent: makes v the view that new readers get

	queue      chan *Request  // from Submit; End closes it
	flights    chan *flight   // from launch to landAll; run closes it
	aloft      sync.WaitGroup // counts the flights that landAll has not landed
	aloftBytes atomic.Int64   // the sum of the bytes of those whose sync is to come
	finished   chan struct{}  // closed by landAll at its end, when the committer has ended
	Figures    commitFigures  // for db.Activity; any goroutine may read them

	tablesUntil atomic.Int64 // time in nanoseconds: more tables may come until then, see settle

	records record.Writer      // of the Tx that is being made
	spare   []*codec.BlockEdit // of earlier transactions, to be used again; at most maxSpare

	last  int       // requests of the transaction before: so many may come again at once, see yield
	hurry time.Time // until when not to yield

	// What is in memory, ahead of what readers see by the flights that have not landed. Only the
	// committer touches it.
	States   map[uint32]*CollectionState // all collections, by id
	dirty    []*CollectionState          // changed since view was called last, each once (Touch); also those dropped since
	shown    Catalogue                   // of that view
	sequence uint64                      // number of the last commit; only committed counts it
	edits    map[string]int              // by key of a block: edits since it was last written whole, see maxEdits
	layers   *layerCounts                // likewise of sets of rows, see MaxLayers
}

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

// CommitTables has the store take over the tables that tasks make, of about so many bytes, as
// one commit: that is how an operation of Load commits. The tables have to hold all that a Tx
// would write: the records, the counters of the collections that have changed (AllCounters)
// and the sequence (Tables.WriteSequence). applied then brings what is in memory to the same,
// calls Touch, and cannot fail. With an error, to which the caller adds what it does, applied has not
// been called, and the store is as it was, or the database has failed.
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

// committed counts a commit, in whatever way it came into the store, and returns the view that
// shows it, for ended.
func (c *Committer) committed() (v *View, changed []*CollectionView) {
	c.sequence++
	return c.view()
}

// ended is the one place that ends a commit: it tells the side file if the commit is durable,
// and shows the view to readers. Between committed and this the commit is in flight.
func (c *Committer) ended(v *View, changed []*CollectionView, durable bool) {
	if durable {
		c.keeper.Reached(v.Sequence)
	}
	c.current(v, changed)
}

// Durable tells the side file that all commits are durable, those under NoSync, too. Close
// calls it after End, when the store has been closed without an error.
func (c *Committer) Durable() { c.keeper.Reached(c.sequence) }

// Sequence returns the number of the last commit.
func (c *Committer) Sequence() uint64 { return c.sequence }

// Reader returns the store, to be read as the last commit has left it.
func (c *Committer) Reader() pebble.Reader { return c.kv }

// Named returns the collection with a name, or nil.
func (c *Committer) Named(name string) *CollectionState {
	if id, ok := c.shown.IDs.Get(name); ok {
		return c.States[id]
	}
	return nil
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

// view returns a view of the present state, and the collections that have changed in it. As no
// other goroutine writes to the store, the snapshot that it takes is of the same commit as what
// is in memory. It costs that snapshot, and for each collection that has changed a
// CollectionView and a path in the maps of the catalogue. Readers see it when ended has shown
// it; until then it is to be released where it is not shown.
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
	clear(c.dirty) // so that what is dropped can go
	c.dirty = c.dirty[:0]
	v = &View{Snap: c.kv.NewSnapshot(), Sequence: c.sequence, Catalogue: c.shown}
	v.Refs.Store(1)
	return v, changed
}
