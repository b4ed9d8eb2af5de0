package db

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

// A database is what goes on in an open database: its store, the committer, the view that
// new readers get, and the indexer. Safe for concurrent use.
type database struct {
	engine     *store.Engine
	signals    *signal.Sender
	tableBytes int64 // of memory that tables of substrings may take (Options.IndexCacheBytes)

	committer *committer
	current   atomic.Pointer[view]
	guard     guard

	// stopping ends when Close begins.
	stopping context.Context

	// changed, unless nil, hears which collections a new view shows otherwise than the one before.
	changed func([]*collectionView)

	indexWanted chan struct{} // asks the indexer to look; holds one
	indexing    sync.Mutex    // held while an index is made, until it is installed
}

// newDatabase returns a database whose store is to be opened. tableBytes bounds what tables of
// substrings take in memory. changed, unless nil, hears which collections a new view shows
// otherwise than the one before; it must not wait.
func newDatabase(engine *store.Engine, signals *signal.Sender, tableBytes int64, changed func([]*collectionView)) *database {
	return &database{engine: engine, signals: signals, tableBytes: tableBytes, changed: changed, indexWanted: make(chan struct{}, 1)}
}

// noDatabase returns one that refuses all calls with an error.
func noDatabase(engine *store.Engine, signals *signal.Sender, err error) *database {
	return &database{engine: engine, signals: signals, guard: guard{closed: err}}
}

// open reads the state of an open store, which has had so many commits.
func (d *database) open(kv *pebble.DB, sequence uint64, noSync, readOnly bool) (err error) {
	c := &committer{
		store: kv, log: d.engine.Log, admit: d.engine.Admit, keepUp: d.engine.KeepUp, fullDisk: d.engine.FullDisk,
		noSync: noSync, readOnly: readOnly, sequence: sequence,
		queue: make(chan *request, 64), finished: make(chan struct{}),
		current: d.setCurrent, edits: map[string]int{}, layers: newLayerCounts(),
	}
	c.tables = func() *store.Tables { return d.engine.Tables(c.sequence) }
	if c.states, err = loadStates(kv); err != nil {
		return err
	}
	for _, s := range c.states {
		cv := s.publish()
		c.touch(s)
		if err := d.loadFew(kv, s, cv); err != nil {
			return err
		}
	}
	d.engine.Log.Work.Figures.Store(store.FiguresOf(kv.Metrics()))
	d.engine.Reserve.Counts(func() int64 { return int64(kv.Metrics().WAL.Size) })
	d.engine.DB, d.committer = kv, c
	return nil
}

// loadFew loads the codes of the sets of a collection that have few.
func (d *database) loadFew(r pebble.Reader, s *collectionState, cv *collectionView) (err error) {
	for i, sp := range s.spaces {
		for j, set := range sp.sets {
			if set.stored.NextCode > loadAtOnce {
				continue
			}
			set.table, err = loadTable(context.Background(), r, cv, &cv.spaces[i].sets[j], d.tableBytes < 0)
			switch {
			case err == nil:
				set.loading = nil
			case errors.Is(err, fault.ErrCorrupt): // concerns whoever needs these codes
				_, op := d.signals.BeginInBackground(context.Background(), event.OpLoad, cv.Name)
				op.End(err, cv.spaces[i].sets[j].event())
				notLoaded(set.loading, err)
			default:
				return err
			}
		}
	}
	return nil
}

// run starts the committer, which tells keeper, if not nil, what is durable. It returns the
// first view, which must be released.
func (d *database) run(keeper *store.Keeper) (first *view) {
	d.committer.keeper = keeper
	d.committer.publish()
	first = d.latest()
	go d.committer.run()
	return first
}

// end ends the committer, when nothing is asked of it any more, and lets go of the view.
func (d *database) end() {
	close(d.committer.queue)
	<-d.committer.finished
	d.current.Load().release()
}

// setCurrent makes v the view that new readers get, in which some collections have changed.
func (d *database) setCurrent(v *view, changed []*collectionView) {
	old := d.current.Swap(v)
	if old != nil {
		old.release()
	}
	// Where tables have grown or gone, the budget may ask others to follow.
	if old == nil || old.tables != v.tables || d.indexDue(v, changed) {
		d.wantIndex()
	}
	if d.changed != nil {
		d.changed(changed)
	}
}

// read gives f the current view, and keeps it and the database open for as long
// as f runs.
func (d *database) read(f func(v *view) error) error {
	v, done, err := d.acquire()
	if err != nil {
		return err
	}
	defer done()
	return f(v)
}

// acquire returns the current view; done must be called when it is not needed
// any more.
func (d *database) acquire() (v *view, done func(), err error) {
	if err := d.guard.enter(); err != nil {
		return nil, nil, err
	}
	v = d.latest()
	return v, func() { v.release(); d.guard.leave() }, nil
}

// latest returns the current view for whoever keeps the database open already; it must
// be released.
func (d *database) latest() *view {
	for {
		if v := d.current.Load(); v.acquire() {
			return v
		}
	}
}
