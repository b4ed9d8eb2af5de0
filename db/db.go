package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
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
// ErrFormat for another format, ErrLocked if this or another process has the database open. If durable commits
// are missing, Open succeeds and Recovery tells.
func Open(dir string, options *Options) (*DB, error) { return open(dir, options.withDefaults()) }

// open is openOnce. Where the disk is full it gives up the spare file, and tries once more.
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
		dir: dir, opts: opts, lock: lock, search: search.NewTools(opts.KeyCacheBytes, opts.RerankCacheBytes), since: time.Now(),
	}
	d.opts.disk.Room = store.NewReserve(&opts.disk, dir)
	d.state = state.New(store.NewEngine(&d.opts.disk, dir), opts.disk.Signals, opts.IndexCacheBytes, opts.RerankCacheBytes, func(changed []*state.CollectionView) { d.learning.Written(changed) })
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

// open makes the store if there is none, tidies the folder, opens the store and starts what
// runs. The folder is locked.
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
	if d.recovery, d.keeper, err = store.TakeStock(d.opts.FS, d.dir, &d.identity, d.opts.ReadOnly, d.state.Signals); err != nil {
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
		if !d.opts.ReadOnly {
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

// Close waits for running calls, makes everything durable, writes the log into tables (some 64 MiB at most), and
// unlocks the folder. After writes it also lets indexes of vectors take in new items, if that takes some seconds
// at most. End a range over Items, Keys, Codes or Runs first: do not close
// from inside one. A second call returns ErrClosed.
func (d *DB) Close() error {
	d.stop() // so that those who wait for codes to be loaded do not hold it up
	if err := d.state.Guard.Close(); err != nil {
		return err
	}
	d.background.Wait()
	if !d.opts.ReadOnly && d.state.Committer.Sequence() != d.opened && d.state.Engine.Log.Failed.Load() == nil {
		d.learning.Settle()
	}
	if !d.opts.ReadOnly {
		d.learning.Checkpoint()
	}
	d.state.End()
	// Damage at the end of a log cannot be told from what a crash leaves, so none is left that
	// counts. Where no tables can be written, the log keeps it.
	if d.state.Committer.Sequence() != d.opened && d.state.Engine.Log.Failed.Load() == nil { // else opening has done it
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

// items returns how many there are in all collections.
func (d *DB) items() (n int64) {
	for cv := range d.state.Current.Load().Collections.Values() {
		n += int64(cv.Items)
	}
	return n
}

// changed tells of what a call has changed.
func (d *DB) changed(ctx context.Context, name event.Name, e event.Event) {
	e.Name = name
	d.state.Signals.Tell(ctx, e)
}
