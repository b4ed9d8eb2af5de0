package state

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// A Database is an open database: its store, the committer, the view for new readers, and the indexer. Safe
// for concurrent use, from Run to End.
//
// Package db makes it with New, opens the store, and calls Open and Run. To close, package db stops its
// background work, closes Guard, which waits for all calls, and calls End.
type Database struct {
	Engine     *store.Engine  // Engine.DB is set by Open
	Signals    *signal.Sender // hears of operations and events
	tableBytes int64          // memory for substring tables (Options.IndexCacheBytes); negative: none

	rerankBytes int64 // memory for rows for reranking (Options.RerankCacheBytes); negative: none

	Committer *Committer // made by Open; it runs from Run to End

	// Current is the view for new readers. Only Committer.ended replaces it (setCurrent), at the end of a
	// commit. During an operation nothing is in flight, so Current is the view of the last commit and stays.
	// Elsewhere take a reference with Latest, or with Acquire.
	Current atomic.Pointer[View]

	Guard guard // counts calls, see Acquire
	pins  pins  // views that snapshots and runs hold, see Pin; End releases them

	calls writeFigures // of all writes, for Activity

	// Stopping ends when Close begins: a long call that has entered Guard then gives up. Package db sets it
	// before Open returns.
	Stopping context.Context

	// changed, unless nil, hears which collections differ between a new view and the one before. setCurrent
	// calls it; it must not wait.
	changed func([]*CollectionView)

	indexWanted chan struct{} // asks the indexer to look; holds one

	// indexing is held while an index is built, or rows for reranking are loaded, until the committer has
	// installed the result: each build starts from the result of the one before. The committer never takes
	// it.
	indexing sync.Mutex
}

// New returns a database whose store is not yet open. tableBytes bounds the memory of substring tables, and
// rerankBytes that of rows for reranking. changed, unless nil, hears which collections differ between a new
// view and the one before; it must not wait.
func New(engine *store.Engine, signals *signal.Sender, tableBytes, rerankBytes int64, changed func([]*CollectionView)) *Database {
	return &Database{Engine: engine, Signals: signals, tableBytes: tableBytes, rerankBytes: rerankBytes, changed: changed, indexWanted: make(chan struct{}, 1)}
}

// Open reads the state of the store kv, whose last commit has the number sequence, and loads small code sets.
// It starts nothing: until Run only the caller may use the database. It costs the reading of all models, live
// rows and labels. On an error the caller keeps kv.
func (d *Database) Open(kv *pebble.DB, sequence uint64, noSync, readOnly bool) (err error) {
	c := &Committer{
		kv: kv, Log: d.Engine.Log, Admit: d.Engine.Admit, keepUp: d.Engine.KeepUp, fullDisk: d.Engine.FullDisk,
		noSync: noSync, readOnly: readOnly, sequence: sequence,
		queue: make(chan *Request, 64), flights: make(chan *flight, maxAloft), finished: make(chan struct{}),
		rerankBytes: d.rerankBytes, current: d.setCurrent, edits: map[string]int{}, layers: newLayerCounts(),
	}
	c.Tables = func() *store.Tables { return d.Engine.Tables(c.sequence) }
	if c.States, err = loadStates(kv); err != nil {
		return err
	}
	for _, s := range c.States {
		s.loadFewEntries(kv)
		cv := s.publish()
		c.Touch(s)
		if err := d.loadFew(kv, s, cv); err != nil {
			return err
		}
	}
	d.Engine.Log.Work.Figures.Store(store.FiguresOf(kv.Metrics()))
	if !readOnly {
		d.Engine.Reserve.Counts(func() int64 { return int64(kv.Metrics().WAL.Size) })
	}
	d.Engine.DB, d.Committer = kv, c
	return nil
}

// loadFew loads the code sets of a collection with at most LoadAtOnce numbers. Damaged codes are no error
// here: Loading tells the callers that need these codes.
func (d *Database) loadFew(r pebble.Reader, s *CollectionState, cv *CollectionView) (err error) {
	for i, sp := range s.Spaces {
		set := sp.Codes
		if set.opening.NextCode > LoadAtOnce {
			continue
		}
		set.Table, err = loadTable(context.Background(), r, cv, &cv.Spaces[i].Codes, d.tableBytes < 0)
		switch {
		case err == nil:
			set.loading = nil
		case errors.Is(err, fault.ErrCorrupt): // concerns whoever needs these codes
			_, op := d.Signals.BeginInBackground(context.Background(), event.OpLoad, cv.Name)
			op.End(err, cv.Spaces[i].Codes.event())
			notLoaded(set.loading, err)
		default:
			return err
		}
	}
	return nil
}

// Run starts the committer, which tells keeper, if not nil, which commits are durable. It publishes the first
// view and returns it, to be released.
func (d *Database) Run(keeper *store.Keeper) (first *View) {
	d.Committer.keeper = keeper
	v, changed := d.Committer.view()
	d.Committer.ended(v, changed, false)
	first = d.Latest()
	go d.Committer.run()
	return first
}

// End ends the committer and releases all views, also pinned ones. All calls and background work that make
// requests must have ended. The store stays open.
func (d *Database) End() {
	d.pins.releaseAll()
	close(d.Committer.queue)
	<-d.Committer.finished
	d.Current.Load().Release()
}

// setCurrent gives new readers v, takes over its reference, and drops the reference of the view before.
// changed are the collections that have changed in v. It runs in the committer or in landAll, never in both
// at once: the committer finishes a commit itself only when nothing is in flight.
func (d *Database) setCurrent(v *View, changed []*CollectionView) {
	old := d.Current.Swap(v)
	if old != nil {
		old.Release()
	}
	// When tables grow or go, the budget may require builds elsewhere.
	if old == nil || old.Tables != v.Tables || v.Rerank.all < old.Rerank.all || d.indexDue(v, changed) {
		d.wantIndex()
	}
	if d.changed != nil {
		d.changed(changed)
	}
}

// Read gives f the current view, and keeps the view and the database open while f runs. It returns ErrClosed
// or the error of f.
func (d *Database) Read(f func(v *View) error) error {
	v, done, err := d.Acquire()
	if err != nil {
		return err
	}
	defer done()
	return f(v)
}

// Acquire returns the current view and keeps the database open. Call done once, when you are done with the
// view: Close waits for it. The error is ErrClosed.
func (d *Database) Acquire() (v *View, done func(), err error) {
	if err := d.Guard.Enter(); err != nil {
		return nil, nil, err
	}
	v = d.Latest()
	return v, func() { v.Release(); d.Guard.Leave() }, nil
}

// Latest returns the current view with a reference, to be released. The caller has entered
// Guard, or runs in the background between Run and End. It never waits.
func (d *Database) Latest() *View {
	for { // repeats only if the committer replaced the view between the two calls
		if v := d.Current.Load(); v.Acquire() {
			return v
		}
	}
}
