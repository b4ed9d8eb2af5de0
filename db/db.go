package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// MarkerName is the name of the file that makes a folder a database.
const MarkerName = store.MarkerName

// Format is the format of databases that this version reads and writes: docs/FORMAT.md has every byte. Open
// refuses a database of another one (ErrFormat).
const Format = record.Format

// A DB is an open database. All methods are safe for concurrent use and return
// ErrClosed after Close.
type DB struct {
	// Set by Open, and not changed after it.
	dir      string          // canonical path of the folder
	opts     settings        // of Open, with defaults
	lock     io.Closer       // of the folder; Close gives it back
	since    time.Time       // when it was opened
	opened   uint64          // commit sequence then
	identity record.Identity // format, UUID and sequence, as the store had them then
	recovery report.Recovery // what Open found; the losses since then are in keeper
	stop     context.CancelFunc

	state    *state.Database // store, committer, views: all that changes goes through it
	learning *learn.Database // learners and builders of its spaces
	copier   *copies.Copier  // makes checkpoints and backups
	keeper   *store.Keeper   // of the side file; nil where there is none, or it is only read

	// background has the goroutines that Open starts: loading and indexing, updating,
	// completing spaces, the keeper. They end after stop; Close waits for them.
	background sync.WaitGroup

	// Each of these has a lock of its own, or atomics.
	lost   atomic.Uint64    // commits, in Losses of Recovery
	search *search.Tools    // what searches share: keys that were read, measured costs, figures
	disk   store.DiskFigure // bytes of the folder, for Stats
}

// Open opens the database in the folder dir, and creates one there unless Options.MustExist or ReadOnly. All
// distinct codes, and the rows that carry them, will be in memory; many codes are loaded in the background,
// while searches read the store and writes wait. Errors: ErrNotDatabase for a folder with other contents,
// ErrFormat for another format, ErrLocked if this or another process has the database open. If durable
// commits are missing, Open succeeds and Recovery tells.
func Open(dir string, options *Options) (*DB, error) { return open(dir, options.withDefaults()) }

// OpenMemory opens an empty database that has no folder: all of it is in memory, and Close forgets it. It is
// for tests, caches and trials. Backup keeps it; a Checkpoint is in memory, too. Options that are about a
// folder (FS, MustExist, ReadOnly, NoSync, ReserveBytes) are not used.
func OpenMemory(options *Options) (*DB, error) {
	var o Options
	if options != nil {
		o = *options
	}
	o.FS, o.MustExist, o.ReadOnly, o.NoSync, o.ReserveBytes = vfs.NewMem(), false, false, true, -1
	return Open("memory", &o)
}

// open calls openOnce. If the disk is full it gives up the spare file, and tries once more.
func open(dir string, opts settings) (*DB, error) {
	d, again, err := openOnce(dir, opts)
	if again {
		d, _, err = openOnce(dir, opts)
	}
	return d, err
}

// openOnce makes the folder if it has to, locks it, and starts the database. After an error the
// folder is not locked, and again says whether the spare file has made room for another try.
func openOnce(dir string, opts settings) (_ *DB, again bool, err error) {
	dir, lock, exists, err := store.Claim(opts.FS, dir, opts.MustExist, opts.ReadOnly)
	if err != nil {
		return nil, false, err
	}
	opts.disk.Cache = store.NewCache(opts.CacheBytes, opts.ReadOnly)
	opts.disk.Signals.About(dir)
	d := &DB{
		dir: dir, opts: opts, lock: lock, search: search.NewTools(opts.KeyCacheBytes, opts.RerankCacheBytes),
		since: time.Now(),
	}
	d.opts.disk.Room = store.NewReserve(&opts.disk, dir)
	d.state = state.New(store.NewEngine(&d.opts.disk, dir), opts.disk.Signals, opts.IndexCacheBytes,
		opts.RerankCacheBytes, func(changed []*state.CollectionView) { d.learning.Written(changed) })
	d.search.Wanted = d.state.WantRerank
	d.learning = learn.New(d.state, opts.UpdateItems, opts.UpdateInterval)
	if err := d.open(exists); err != nil {
		opts.disk.Cache.Unref()
		err = fault.DiskFullToOpen(dir, err, d.state.Engine.Log.Failed.Load())
		again = !opts.ReadOnly && errors.Is(err, ErrDiskFull) && d.opts.disk.Room.GiveUpSpare()
		err = errors.Join(err, lock.Close())
		d.state.Signals.Wait()
		return nil, again, err
	}
	d.state.Signals.Happened(event.Opened, slog.LevelInfo, event.Event{
		Items: d.items(), Duration: time.Since(d.since),
		Attrs: []slog.Attr{slog.Uint64("sequence", d.opened), slog.Bool("read_only", opts.ReadOnly)},
	})
	return d, false, nil
}

// open creates the store if necessary, tidies the folder, opens the store and starts the goroutines. The
// folder is locked.
func (d *DB) open(exists bool) error {
	if err := d.state.Engine.Ready(exists, d.opts.ReadOnly); err != nil {
		return err
	}
	kv, err := store.OpenDatabase(d.dir, &d.opts.disk, d.state.Engine.Log, d.opts.ReadOnly)
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
	if err := d.state.Open(kv, d.identity.Sequence, d.opts.NoSync, d.opts.ReadOnly); err != nil {
		return err
	}
	d.copier = copies.New(d.state, &d.opts.disk, d.identity, d.opts.ReadOnly)
	if d.recovery, d.keeper, err = store.TakeStock(d.opts.FS, d.dir, &d.identity, d.opts.ReadOnly,
		d.state.Signals); err != nil {
		return err
	}
	for _, l := range d.recovery.Losses {
		d.lost.Add(l.Commits())
	}
	d.opened = d.identity.Sequence
	first := d.state.Run(d.keeper)
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.state.Stopping = ctx
	d.background.Go(func() {
		d.state.Load(ctx, first)
		if !d.opts.ReadOnly && !d.opts.NoResume {
			d.background.Go(d.learning.Resume(ctx, first))
		}
		first.Release()
		d.state.RunIndexer(ctx)
	})
	if !d.opts.ReadOnly {
		d.background.Go(func() { d.learning.KeepUpdated(ctx) })
		d.background.Go(func() { d.learning.KeepRenewed(ctx) })
	}
	if d.keeper != nil {
		d.background.Go(func() { d.keeper.Run(ctx) })
	}
	return nil
}

// writable refuses writes to a database that is open for reading only.
func (d *DB) writable() error {
	if d.opts.ReadOnly {
		return fmt.Errorf("%w: %s was opened for reading only", fault.ErrReadOnly, d.dir)
	}
	return nil
}

// Close waits for running calls, makes everything durable, writes the log into tables (some 64 MiB at most),
// and unlocks the folder. After writes it also lets indexes of vectors take in new items, if that takes some
// seconds at most. Do not call Close inside a range over Items, Keys, Codes or Runs: end it first. A second
// call returns ErrClosed.
func (d *DB) Close() error {
	d.stop() // so that those who wait for codes to be loaded do not hold it up
	if err := d.state.Guard.Close(); err != nil {
		return err
	}
	d.background.Wait()
	if !d.opts.ReadOnly && d.state.Committer.Sequence() != d.opened &&
		d.state.Engine.Log.Failed.Load() == nil {
		d.learning.Settle()
	}
	if !d.opts.ReadOnly {
		d.learning.Checkpoint()
	}
	d.state.End()
	// Damage at the end of a log looks like the remains of a crash. So Close leaves no log with data, unless
	// no tables can be written.
	// else opening has done it
	if d.state.Committer.Sequence() != d.opened && d.state.Engine.Log.Failed.Load() == nil {
		_ = d.state.Engine.FlushAll(context.Background())
	}
	err := d.state.Engine.DB.Close()
	if failed := d.state.Engine.Log.Err(); failed != nil {
		err = errors.Join(failed, err)
	}
	if d.keeper != nil {
		if err == nil {
			d.state.Committer.Durable()
		}
		d.keeper.Close()
	}
	d.opts.disk.Cache.Unref()
	err = fault.Annotate(errors.Join(err, d.lock.Close()), "close %s", d.dir)
	d.state.Signals.Happened(event.Closed, slog.LevelInfo, event.Event{Err: err})
	d.state.Signals.Wait()
	return err
}

// items returns the number of items in all collections.
func (d *DB) items() (n int64) {
	for cv := range d.state.Current.Load().Collections.Values() {
		n += int64(cv.Items)
	}
	return n
}

// changed reports a change by a call as an event.
func (d *DB) changed(ctx context.Context, name event.Name, e event.Event) {
	e.Name = name
	d.state.Signals.Tell(ctx, e)
}

// Options tune a database. A nil *Options and zero fields mean the defaults.
type Options struct {
	// MustExist makes Open refuse, with ErrNotDatabase, a folder that holds no
	// database yet, instead of creating one there.
	MustExist bool

	// ReadOnly opens the database for reading only. Nothing in its folder changes, so the folder may be on a
	// read-only medium. Writes and all else that would store something give ErrReadOnly, and the only work in
	// the background is loading. Several processes can open a database this way at a time, but not while one
	// has it open for writing. Each Open reads the log that a crash left, and leaves it there.
	ReadOnly bool

	// CacheBytes is the size of the cache of stored blocks; 64 MiB by default. In a database that is open for
	// writing it may grow to twice that, at most 64 MiB more, while little data waits to be written into
	// tables.
	CacheBytes int64

	// IndexCacheBytes bounds the memory of the tables that make searches fast, of all collections together:
	// some 30 bytes a code of 128 bits. 4 GiB by default, negative for none. Segments beyond the limit are
	// searched by reading their codes, or within a radius by the tables on disk. The codes themselves and the
	// rows that carry them, some 35 bytes each, are in memory in any case.
	IndexCacheBytes int64

	// RerankCacheBytes bounds the memory for ordering hits, of all collections together: the projections of
	// items, a byte a bit of the code for each item; and the vectors, with a byte a dimension, of modalities
	// that a search has compared since opening (see RerankAuto). 1 GiB by default, negative for none. Beyond
	// the limit searches read the data of the latest items from the store. Answers are the same.
	RerankCacheBytes int64

	// KeyCacheBytes bounds the memory for keys of found items; 256 MiB by default.
	KeyCacheBytes int64

	// UpdateItems, if positive, makes the active space of a collection learn in the background after every so
	// many written items: see Collection.Update, with TeacherAuto. UpdateInterval, if positive, does so at
	// this interval if anything has been written. By default projections change only when Update is called.
	UpdateItems    int
	UpdateInterval time.Duration

	// NoResume leaves spaces unfinished that an earlier process has begun to build, until Reindex goes on.
	// Otherwise Open completes them in the background.
	NoResume bool

	// NoSync lets writes of items return before they are on stable storage: a crash, even of the process
	// alone, may lose the latest ones, in reverse order, and never part of one. Close makes all durable. New
	// collections, alterations, trainings, DeleteWhere and batches of many thousand new items are synced,
	// together with all earlier writes.
	NoSync bool

	// ReserveBytes is the space to keep free on the file system. Writes that would use it give a
	// *DiskFullError (ErrDiskFull) until there is room again; so do bulk loads, trainings, reindexings and
	// compactions, when they begin. Reads go on. Deletions and drops, which free space, may use all of the
	// reserve but 64 KiB. Default: 256 MiB, or a twentieth of a smaller file system. A negative number means
	// no reserve. The check is left out where the file system does not report its free space.
	ReserveBytes int64

	// Logger gets the events of the database; see event.Event. Nothing by default.
	Logger *slog.Logger

	// EventListener, if not nil, gets them as well.
	EventListener event.Listener

	// FS is the file system; nil means the one of the operating system.
	FS vfs.FS
}

// settings are the options of a database with their defaults, and what follows from them.
type settings struct {
	Options
	disk store.Config
}

// The sizes of caches by default.
const (
	cacheBytes       = 64 << 20
	indexCacheBytes  = 4 << 30
	rerankCacheBytes = 1 << 30
	keyCacheBytes    = 256 << 20
)

// ShareCaches returns the options of each of n databases of one program that share the caches of o. It
// divides CacheBytes, IndexCacheBytes, RerankCacheBytes and KeyCacheBytes by n; 0 stands for the default. The
// results are at least 8, 16, 8 and 4 MiB, or the whole cache if that is less. Negative values stay, and with
// n of 1 or less o is returned unchanged.
func ShareCaches(o Options, n int) Options {
	for _, cache := range []struct {
		bytes          *int64
		whole, atLeast int64
	}{{&o.CacheBytes, cacheBytes, 8 << 20}, {&o.IndexCacheBytes, indexCacheBytes, 16 << 20},
		{&o.RerankCacheBytes, rerankCacheBytes, 8 << 20}, {&o.KeyCacheBytes, keyCacheBytes, 4 << 20}} {
		whole := cmp.Or(*cache.bytes, cache.whole)
		if whole > 0 && n > 1 {
			*cache.bytes = max(whole/int64(n), min(whole, cache.atLeast))
		}
	}
	return o
}

// withDefaults returns the options, which may be nil, with their defaults, and a sender of
// events made from them.
func (o *Options) withDefaults() settings {
	var out settings
	if o != nil {
		out.Options = *o
	}
	if out.CacheBytes <= 0 {
		out.CacheBytes = cacheBytes
	}
	if out.IndexCacheBytes == 0 {
		out.IndexCacheBytes = indexCacheBytes
	}
	if out.RerankCacheBytes == 0 {
		out.RerankCacheBytes = rerankCacheBytes
	}
	if out.KeyCacheBytes <= 0 {
		out.KeyCacheBytes = keyCacheBytes
	}
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	if out.FS == nil {
		out.FS = vfs.Default
	}
	out.FS = store.WithKinds(out.FS)
	out.disk = store.Config{
		FS: out.FS, CacheBytes: out.CacheBytes, ReserveBytes: out.ReserveBytes,
		Signals: signal.NewSender(out.Logger, out.EventListener),
	}
	return out
}

// Limits on what an item, and a batch, may hold.
const (
	MaxKeyBytes     = record.MaxKeyBytes     // key, in bytes of UTF-8: 1 KiB
	MaxNameBytes    = record.MaxNameBytes    // names of collections, modalities, fields: 256
	MaxLabelBytes   = record.MaxLabelBytes   // one label: 1 KiB
	MaxLabels       = record.MaxLabels       // labels of one item: 4096
	MaxFieldBytes   = record.MaxFieldBytes   // one string field: 1 MiB
	MaxIndexedBytes = record.MaxIndexedBytes // one string field that is indexed: 1 KiB
	MaxPayloadBytes = record.MaxPayloadBytes // payload: 64 MiB
	MaxDim          = record.MaxDim          // dimensions of a modality: 1,048,576
	MaxModalities   = record.MaxModalities   // modalities of a collection: 256
	MaxFields       = record.MaxFields       // fields of a collection: 1024
	MaxBatchBytes   = record.MaxBatchBytes   // all items of one Batch: 1 GiB
	MaxBulkBytes    = record.MaxBulkBytes    // the same where all are new items of one collection: 4 GiB
)
