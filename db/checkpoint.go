package db

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

// CheckpointOptions say what a checkpoint is to hold. The zero value is everything.
type CheckpointOptions struct {
	// Collection, if not empty, is the only collection that it holds, with all its
	// spaces. Its number, and those of rows, codes and spaces, stay what they are.
	Collection string

	// IndexOnly leaves out the vectors of items, and what only learning needs: statistics,
	// what items have taught, and spaces that are being built. What answers searches by
	// vector, code or key, filters, Get and counts is there. Such collections say so
	// (Schema.IndexOnly) and cannot be written to: writes, training and updates give
	// ErrReadOnly. A collection of given codes is copied whole.
	IndexOnly bool

	// Progress hears how many of about how many bytes have been written of a checkpoint
	// that does not hold everything, in the stage "copy".
	Progress event.Progress
}

// Checkpoint writes the database as it is now into a new folder, as a database of its own
// that another process may open while this one goes on. Readers and writers go on
// meanwhile. The folder is there when it is complete and durable, and with an error it is
// not: while it is being made it has the name with ".incomplete" at its end, under which
// a process that ends leaves it. The next checkpoint to the folder clears that away.
//
// One of everything shares the tables of the store, by hard links where the file system
// has them: it takes as long as writing
// what is in memory into a table, and no space at first; as this database goes on, what
// it replaces stays on disk for as long as the checkpoint is there. Where it has none, or
// the folder is on another one, tables are copied. Writers wait while either is done. One that leaves something out is new
// tables, which share nothing: it takes the time of reading and writing what it holds, on
// half of GOMAXPROCS, some megabytes of memory for each of these, and while it runs this
// database keeps what is being replaced. Nothing of what it leaves out is in its files. It
// has a UUID of its own.
//
// A folder that exists gives ErrExists, one in the folder of this or of another database
// ErrInvalid, one that is being made ErrLocked, a collection that
// does not exist ErrNotFound, damage that is met ErrCorrupt, a database that has failed
// ErrFailed. Where a copy, or what is newly written, would eat into Options.ReserveBytes of
// the disk that it is on, that gives ErrDiskFull. Close ends it with ErrClosed.
func (d *DB) Checkpoint(ctx context.Context, dir string, opt CheckpointOptions) error {
	d = d.orNone()
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.state.Stopping, func() { cancel(fault.ErrClosed) })()
	ctx, op := d.state.Signals.Begin(ctx, event.OpCheckpoint, opt.Collection)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	err := d.state.Engine.Log.Err()
	if err == nil {
		v := d.state.Latest()
		defer v.Release()
		err = d.checkpoint(ctx, v, dir, opt)
	}
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	err = fault.Annotate(fault.DiskFullElsewhere(err), "checkpoint %s", dir)
	op.End(err, event.Event{Attrs: []slog.Attr{slog.String("to", dir)}})
	return err
}

// checkpoint writes the view, or what is there by now where that is everything.
func (d *DB) checkpoint(ctx context.Context, v *state.View, dir string, opt CheckpointOptions) error {
	x, err := d.newExtract(v, opt)
	if err != nil {
		return err
	}
	if x != nil && (opt.Collection != "" || opt.IndexOnly) && d.Format() >= record.FormatIdentity {
		x.identity.UUID = record.NewUUID() // it is another database: backups of both are not to be taken for one another's
	}
	return store.NewFolder(d.opts.FS, dir, func(path string) error {
		if x != nil {
			return x.writeFolder(ctx, path)
		}
		return store.Create(d.opts.FS, path, func(made string) (record.Identity, error) { return d.checkpointStore(ctx, made) }, nil)
	})
}

// checkpointStore makes a store at path that has all that is in this one at one moment, and
// returns what it is. The committer makes it: Pebble copies its log after it has decided
// which tables to take, so that tables that it takes over in between would be missing,
// while a later commit is there.
func (d *DB) checkpointStore(ctx context.Context, path string) (record.Identity, error) {
	i := d.identity
	if err := d.state.Engine.Log.Err(); err != nil {
		return i, err
	}
	// Else what is in the log would be in the copy of the log now, and in tables later.
	if err := d.state.Engine.FlushAll(ctx); err != nil {
		return i, err
	}
	var log int64
	if err := d.roomToCopy(path); err != nil {
		return i, err
	}
	err := d.state.Committer.Look(ctx, func() error {
		i.Sequence = d.state.Committer.Sequence
		err := pebbleCheckpoint(d.state.Engine.DB, path, []pebble.CheckpointOption{pebble.WithFlushedWAL()})
		log = logBytes(d.state.Engine.DB)
		if failed := d.state.Engine.Log.Err(); failed != nil {
			return failed // the store has gone on without its files
		}
		return err
	})
	if err == nil {
		err = trimLog(d.opts.FS, path, log)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return i, err
}

// roomToCopy refuses a store at path that would take more space than there is: where
// tables cannot be linked to, they are copied. The folder above path is there.
func (d *DB) roomToCopy(path string) error {
	fsys := d.opts.FS
	link := path + ".link"
	if err := fsys.Link(fsys.PathJoin(d.dir, store.MarkerName), link); err == nil {
		return fsys.Remove(link)
	}
	dir := fsys.PathDir(path)
	room := &store.Reserve{FS: fsys, Dir: dir, Path: dir, Want: d.opts.ReserveBytes}
	return room.Admit(int64(d.state.Engine.DB.Metrics().DiskSpaceUsage()), false)
}

// pebbleCheckpoint is store.Checkpoint, which panics where the new folder cannot be
// synced. It holds no lock there, and lets go of what it does hold, but for a handle of
// that folder, which the garbage collector closes.
func pebbleCheckpoint(kv *pebble.DB, path string, options []pebble.CheckpointOption) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return kv.Checkpoint(path, options...)
}
