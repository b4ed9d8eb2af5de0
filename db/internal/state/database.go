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

// A Database is what goes on in an open database: its store, the committer, the view that
// new readers get, and the indexer. Safe for concurrent use.
type Database struct {
	Engine     *store.Engine
	Signals    *signal.Sender
	tableBytes int64 // of memory that tables of substrings may take (Options.IndexCacheBytes)

	Committer *Committer
	Current   atomic.Pointer[View]
	Guard     guard

	pins pins // views that snapshots and runs keep

	// Stopping ends when Close begins.
	Stopping context.Context

	// changed, unless nil, hears which collections a new view shows otherwise than the one before.
	changed func([]*CollectionView)

	indexWanted chan struct{} // asks the indexer to look; holds one
	indexing    sync.Mutex    // held while an index is made, until it is installed
}

// New returns a database whose store is to be opened. TableBytes bounds what tables of
// substrings take in memory. changed, unless nil, hears which collections a new view shows
// otherwise than the one before; it must not wait.
func New(engine *store.Engine, signals *signal.Sender, tableBytes int64, changed func([]*CollectionView)) *Database {
	return &Database{Engine: engine, Signals: signals, tableBytes: tableBytes, changed: changed, indexWanted: make(chan struct{}, 1)}
}

// None returns one that refuses all calls with an error.
func None(engine *store.Engine, signals *signal.Sender, err error) *Database {
	return &Database{Engine: engine, Signals: signals, Guard: guard{closed: err}}
}

// Open reads the state of an open store, which has had so many commits.
func (d *Database) Open(kv *pebble.DB, sequence uint64, noSync, readOnly bool) (err error) {
	c := &Committer{
		Store: kv, Log: d.Engine.Log, Admit: d.Engine.Admit, keepUp: d.Engine.KeepUp, fullDisk: d.Engine.FullDisk,
		noSync: noSync, readOnly: readOnly, Sequence: sequence,
		queue: make(chan *Request, 64), finished: make(chan struct{}),
		Current: d.setCurrent, edits: map[string]int{}, layers: newLayerCounts(),
	}
	c.Tables = func() *store.Tables { return d.Engine.Tables(c.Sequence) }
	if c.States, err = loadStates(kv); err != nil {
		return err
	}
	for _, s := range c.States {
		cv := s.publish()
		c.Touch(s)
		if err := d.loadFew(kv, s, cv); err != nil {
			return err
		}
	}
	d.Engine.Log.Work.Figures.Store(store.FiguresOf(kv.Metrics()))
	d.Engine.Reserve.Counts(func() int64 { return int64(kv.Metrics().WAL.Size) })
	d.Engine.DB, d.Committer = kv, c
	return nil
}

// loadFew loads the codes of the sets of a collection that have few.
func (d *Database) loadFew(r pebble.Reader, s *CollectionState, cv *CollectionView) (err error) {
	for i, sp := range s.Spaces {
		for j, set := range sp.Sets {
			if set.stored.NextCode > LoadAtOnce {
				continue
			}
			set.Table, err = loadTable(context.Background(), r, cv, &cv.Spaces[i].Sets[j], d.tableBytes < 0)
			switch {
			case err == nil:
				set.loading = nil
			case errors.Is(err, fault.ErrCorrupt): // concerns whoever needs these codes
				_, op := d.Signals.BeginInBackground(context.Background(), event.OpLoad, cv.Name)
				op.End(err, cv.Spaces[i].Sets[j].event())
				notLoaded(set.loading, err)
			default:
				return err
			}
		}
	}
	return nil
}

// Run starts the committer, which tells keeper, if not nil, what is durable. It returns the
// first view, which must be released.
func (d *Database) Run(keeper *store.Keeper) (first *View) {
	d.Committer.keeper = keeper
	d.Committer.publish()
	first = d.Latest()
	go d.Committer.run()
	return first
}

// End ends the committer, when nothing is asked of it any more, and lets go of all views.
func (d *Database) End() {
	d.pins.releaseAll()
	close(d.Committer.queue)
	<-d.Committer.finished
	d.Current.Load().Release()
}

// setCurrent makes v the view that new readers get, in which some collections have changed.
func (d *Database) setCurrent(v *View, changed []*CollectionView) {
	old := d.Current.Swap(v)
	if old != nil {
		old.Release()
	}
	// Where tables have grown or gone, the budget may ask others to follow.
	if old == nil || old.Tables != v.Tables || d.indexDue(v, changed) {
		d.wantIndex()
	}
	if d.changed != nil {
		d.changed(changed)
	}
}

// Read gives f the current view, and keeps it and the database open for as long
// as f runs.
func (d *Database) Read(f func(v *View) error) error {
	v, done, err := d.Acquire()
	if err != nil {
		return err
	}
	defer done()
	return f(v)
}

// Acquire returns the current view; done must be called when it is not needed
// any more.
func (d *Database) Acquire() (v *View, done func(), err error) {
	if err := d.Guard.Enter(); err != nil {
		return nil, nil, err
	}
	v = d.Latest()
	return v, func() { v.Release(); d.Guard.Leave() }, nil
}

// Latest returns the current view for whoever keeps the database open already; it must
// be released.
func (d *Database) Latest() *View {
	for {
		if v := d.Current.Load(); v.Acquire() {
			return v
		}
	}
}
