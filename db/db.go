package db

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/mih"
)

// A DB is an open database. All methods are safe for concurrent use and return
// ErrClosed after Close.
type DB struct {
	dir       string
	opts      settings
	signals   *signal.Sender
	counters  counters
	lock      io.Closer
	engine    *store.Engine
	opened    uint64 // commit sequence then
	committer *committer
	current   atomic.Pointer[view]
	guard     guard

	// What goes on in the background: loading and indexing.
	background  sync.WaitGroup
	stop        context.CancelFunc
	indexWanted chan struct{} // asks the indexer to look; holds one
	indexing    sync.Mutex    // held while an index is made, until it is installed
	buildings   buildings
	stopping    context.Context // ends when Close begins
	stored      mih.StoredCosts
	pins        pins
	keys        *keyCache
	learners    learners
	updates     chan struct{} // asks the updater to look; holds one
	tables      backedUp
	imports     openImports
	staged      stagedFigures
	disk        diskFigure

	identity record.Identity
	recovery Recovery
	keeper   *store.Keeper // of the side file; nil where there is none, or it is only read
}

// Open opens the database in the folder dir, creating one where there is none
// unless Options.MustExist or ReadOnly. Memory will hold all distinct codes and which rows
// carry them; where they are many they are loaded in the background, while
// searches read the store and writes wait. A folder that holds
// something else gives ErrNotDatabase, one of a newer version ErrFormat, one
// that is open already, here or in another process, ErrLocked. A database of an older
// format, from MinFormat on, stays what it is: see Upgrade. Where commits are missing that
// were durable once, Open succeeds and Recovery tells.
func Open(dir string, options *Options) (*DB, error) { return open(dir, options.withDefaults()) }

func open(dir string, opts settings) (*DB, error) {
	fsys := opts.FS
	exists, creatable, err := store.Inspect(fsys, dir)
	switch {
	case err != nil:
		return nil, err
	case exists:
	case !creatable:
		return nil, store.Foreign(fsys, dir)
	case opts.MustExist || opts.ReadOnly:
		return nil, store.NoneYet(fsys, dir)
	default:
		if err := store.Outside(fsys, dir); err != nil {
			return nil, err
		}
		if err := store.MakeDir(fsys, dir); err != nil {
			return nil, fmt.Errorf("fddhdb: create %s: %w", dir, err)
		}
	}
	if dir, err = store.Canonical(fsys, dir); err != nil {
		return nil, err
	}
	lock, err := store.Lock(fsys, dir, opts.ReadOnly)
	if err != nil {
		return nil, err
	}
	opts.disk.Cache = pebble.NewCache(opts.CacheBytes)
	opts.disk.Signals.About(dir)
	d := &DB{
		dir: dir, opts: opts, signals: opts.disk.Signals, lock: lock, keys: newKeyCache(opts.KeyCacheBytes),
	}
	d.counters.opened = time.Now()
	d.opts.disk.Room = store.NewReserve(&opts.disk, dir)
	d.engine = store.NewEngine(&d.opts.disk, dir)
	if err := d.open(exists); err != nil {
		opts.disk.Cache.Unref()
		err = errors.Join(fault.DiskFullToOpen(dir, err, d.engine.Log.Failed.Load()), lock.Close())
		d.signals.Wait()
		return nil, err
	}
	d.signals.Happened(event.Opened, slog.LevelInfo, event.Event{
		Items: d.items(), Duration: time.Since(d.counters.opened),
		Attrs: []slog.Attr{slog.Uint64("sequence", d.opened), slog.Int("format", d.identity.Format), slog.Bool("read_only", opts.ReadOnly)},
	})
	return d, nil
}

func (d *DB) open(exists bool) error {
	if !exists {
		// Look again, as another process may have had the lock until now.
		exists, creatable, err := store.Inspect(d.opts.FS, d.dir)
		switch {
		case err != nil:
			return err
		case exists:
		case !creatable:
			return store.Foreign(d.opts.FS, d.dir)
		default:
			if err := store.Create(d.opts.FS, d.dir, d.engine.Make, d.engine.Check); err != nil {
				return fault.Annotate(err, "create %s", d.dir)
			}
		}
	}
	if !d.opts.ReadOnly {
		if err := store.FinishRepair(d.opts.FS, d.dir); err != nil {
			return fault.Annotate(err, "open %s", d.dir)
		}
		if err := store.RemoveLeftovers(d.opts.FS, d.dir); err != nil {
			return fault.Annotate(err, "open %s", d.dir)
		}
	}
	kv, err := store.OpenDatabase(d.dir, &d.opts.disk, d.engine.Log, d.opts.ReadOnly)
	if err != nil {
		return err
	}
	if err := d.start(kv); err != nil {
		return errors.Join(err, d.keeper.Drop(), kv.Close())
	}
	return nil
}

// start reads the state of the store and starts the committer.
func (d *DB) start(kv *pebble.DB) error {
	var err error
	if d.identity, err = record.ReadIdentity(kv, d.dir); err != nil {
		return err
	}
	c := &committer{
		store: kv, log: d.engine.Log, counters: &d.counters, admit: d.engine.Admit, keepUp: d.engine.KeepUp, fullDisk: d.engine.FullDisk, noSync: d.opts.NoSync, readOnly: d.opts.ReadOnly, sequence: d.identity.Sequence,
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
		for i, sp := range s.spaces {
			for j, set := range sp.sets {
				if set.stored.NextCode > loadAtOnce {
					continue
				}
				set.table, err = loadTable(context.Background(), kv, cv, &cv.spaces[i].sets[j], d.opts.IndexCacheBytes < 0)
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
	}
	d.engine.Log.Work.Figures.Store(store.FiguresOf(kv.Metrics()))
	if err := d.takeStock(); err != nil {
		return err
	}
	if !d.opts.ReadOnly {
		if err := d.settleImports(); err != nil {
			return fault.Annotate(err, "open %s", d.dir)
		}
	}
	c.keeper = d.keeper
	d.engine.Reserve.Counts(func() int64 { return int64(kv.Metrics().WAL.Size) })
	d.engine.DB, d.committer, d.opened = kv, c, c.sequence
	d.indexWanted, d.updates = make(chan struct{}, 1), make(chan struct{}, 1)
	c.publish()
	first := d.latest()
	go c.run()
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.stopping = ctx
	d.background.Go(func() {
		d.load(ctx, first)
		if !d.opts.ReadOnly && !d.opts.passive {
			d.background.Go(d.resume(ctx, first))
		}
		first.release()
		d.runIndexer(ctx)
	})
	if !d.opts.ReadOnly && !d.opts.passive {
		d.background.Go(func() { d.keepUpdated(ctx) })
	}
	if d.keeper != nil {
		d.background.Go(func() { d.keeper.Run(ctx) })
	}
	return nil
}

// setCurrent makes v the view that new readers get, in which some collections have changed.
func (d *DB) setCurrent(v *view, changed []*collectionView) {
	old := d.current.Swap(v)
	if old != nil {
		old.release()
	}
	// Where tables have grown or gone, the budget may ask others to follow.
	if old == nil || old.tables != v.tables || d.indexDue(v, changed) {
		d.wantIndex()
	}
	if d.updateDue(changed) {
		select {
		case d.updates <- struct{}{}:
		default: // it will look
		}
	}
}

// Close waits for the calls that are going on, makes everything durable, writes what is
// in the log only into tables, at most some 64 MiB, and frees the folder for others. A range over Items, ItemsWhere, Codes, Neighbors or
// Runs that is still running must end first, so do not close from inside one. A second call returns ErrClosed.
func (d *DB) Close() error {
	d = d.orNone()
	d.stop() // so that those who wait for codes to be loaded do not hold it up
	if err := d.guard.close(); err != nil {
		return err
	}
	d.background.Wait()
	importing := d.closeImports()
	if !d.opts.ReadOnly {
		d.checkpointAll()
	}
	d.pins.releaseAll()
	close(d.committer.queue)
	<-d.committer.finished
	d.flush()
	d.current.Load().release()
	err := d.engine.DB.Close()
	if failed := d.engine.Log.Err(); failed != nil {
		err = errors.Join(failed, err)
	}
	if d.keeper != nil {
		if err == nil {
			d.keeper.Reached(d.committer.sequence) // with what was not synced one by one
		}
		d.keeper.Close()
	}
	d.opts.disk.Cache.Unref()
	err = fault.Annotate(errors.Join(err, importing, d.lock.Close()), "close %s", d.dir)
	d.signals.Happened(event.Closed, slog.LevelInfo, event.Event{Err: err})
	d.signals.Wait()
	return err
}

// items returns how many there are in all collections.
func (d *DB) items() (n int64) {
	for cv := range d.current.Load().collections.values() {
		n += int64(cv.items)
	}
	return n
}

// changed tells of what a call has changed.
func (d *DB) changed(ctx context.Context, name event.Name, e event.Event) {
	e.Name = name
	d.signals.Tell(ctx, e)
}

// read gives f the current view, and keeps it and the database open for as long
// as f runs.
func (d *DB) read(f func(v *view) error) error {
	v, done, err := d.acquire()
	if err != nil {
		return err
	}
	defer done()
	return f(v)
}

// acquire returns the current view; done must be called when it is not needed
// any more.
func (d *DB) acquire() (v *view, done func(), err error) {
	if err := d.guard.enter(); err != nil {
		return nil, nil, err
	}
	v = d.latest()
	return v, func() { v.release(); d.guard.leave() }, nil
}

// latest returns the current view for whoever keeps the database open already; it must
// be released.
func (d *DB) latest() *view {
	for {
		if v := d.current.Load(); v.acquire() {
			return v
		}
	}
}

// A guard counts the calls that are going on, so that Close can wait for them.
// Calls that begin after Close has are refused rather than made to wait, so that
// a call made inside another cannot deadlock with Close.
type guard struct {
	mu     sync.Mutex
	calls  int
	closed error         // that calls get; nil while it is open
	idle   chan struct{} // closed when the last call has gone, after close
}

// enter counts a call, which must leave; an error says why it must not go on.
func (g *guard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.calls++
	}
	return g.closed
}

func (g *guard) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls--; g.calls == 0 && g.closed != nil {
		close(g.idle)
	}
}

// close keeps new calls out and waits for the others; an error if it was closed
// already.
func (g *guard) close() error {
	g.mu.Lock()
	if err := g.closed; err != nil {
		g.mu.Unlock()
		return err
	}
	g.closed, g.idle = fault.ErrClosed, make(chan struct{})
	if g.calls == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	<-g.idle
	return nil
}

// CreateCollection creates a collection, durably. A name that is in use gives
// ErrExists, a schema that cannot be ErrInvalid.
func (d *DB) CreateCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	d = d.orNone()
	if err := record.CheckName("collection", name); err != nil {
		return nil, err
	}
	if schema.IndexOnly {
		return nil, fault.Invalid("an index-only collection is made by Checkpoint, from one with vectors")
	}
	desc := schema.descriptor(name)
	if err := desc.Check(); err != nil {
		return nil, err
	}
	if err := d.writable(); err != nil {
		return nil, err
	}
	if err := d.guard.enter(); err != nil {
		return nil, err
	}
	defer d.guard.leave()
	err := d.committer.do(ctx, 0, func(tx *tx) error { return tx.createCollection(desc) })
	if err != nil {
		return nil, err
	}
	d.changed(ctx, event.CollectionCreated, event.Event{Collection: name})
	return &Collection{db: d, id: desc.ID, name: name}, nil
}

func (tx *tx) createCollection(d *record.Descriptor) error {
	c := tx.c
	if _, ok := c.shown.ids.get(d.Name); ok {
		return fmt.Errorf("%w: collection %q", fault.ErrExists, d.Name)
	}
	next := uint32(1)
	b, err := record.Get(c.store, codec.DatabaseKey(codec.RecordNextID))
	if err != nil {
		return err
	}
	switch {
	case len(b) == 4:
		next = binary.BigEndian.Uint32(b)
	case b != nil:
		return fault.Corrupt(fmt.Errorf("%d bytes", len(b)), "id of the next collection")
	}
	if next == record.MaxRows {
		return fmt.Errorf("%w: collections", fault.ErrFull)
	}
	d.ID = next
	s := newCollectionState(d)
	value, err := d.Encode()
	if err != nil {
		return err
	}
	for _, kv := range [][2][]byte{
		{codec.DatabaseKey(codec.RecordNextID), binary.BigEndian.AppendUint32(nil, next+1)},
		{codec.NameKey(d.Name), binary.BigEndian.AppendUint32(nil, d.ID)},
		{codec.CollectionKey(codec.KindCollection, d.ID), value},
	} {
		if err := tx.batch.Set(kv[0], kv[1], nil); err != nil {
			return err
		}
	}
	if d.CodesOnly() {
		if err := tx.codesOnlySpace(s); err != nil {
			return err
		}
	}
	c.states[d.ID] = s
	c.touch(s)
	return nil
}

// Collection returns the collection of that name, or ErrNotFound.
func (d *DB) Collection(name string) (*Collection, error) {
	d = d.orNone()
	v, done, err := d.acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	id, ok := v.ids.get(name)
	if !ok {
		return nil, fault.NotFound("collection %q", record.Shortened(name))
	}
	return &Collection{db: d, id: id, name: name}, nil
}

// Collections returns the names of the collections, sorted.
func (d *DB) Collections() ([]string, error) {
	d = d.orNone()
	v, done, err := d.acquire()
	if err != nil {
		return nil, err
	}
	defer done()
	names := make([]string, 0, v.collections.len())
	for cv := range v.collections.values() {
		names = append(names, cv.Name)
	}
	slices.Sort(names)
	return names, nil
}
