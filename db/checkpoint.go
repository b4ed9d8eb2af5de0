package db

import (
	"context"
	"errors"
	"log/slog"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/copies"
	"github.com/fddhdb/fddhdb/db/internal/work"
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
// One of everything shares the tables of the store, by hard links where the file system has
// them: it takes as long as writing what is in memory into a table, and no space at first; as
// this database goes on, what it replaces stays on disk for as long as the checkpoint is
// there. Where it has none, or the folder is on another one, tables are copied. Writers wait
// while either is done. One that leaves something out is new tables, which share nothing: it
// takes the time of reading and writing what it holds, on half of GOMAXPROCS, some megabytes
// of memory for each of these, and while it runs this database keeps what is being replaced.
// Nothing of what it leaves out is in its files. It has a UUID of its own.
//
// A folder that exists gives ErrExists, one in the folder of this or of another database
// ErrInvalid, one that is being made ErrLocked, a collection that
// does not exist ErrNotFound, damage that is met ErrCorrupt, a database that has failed
// ErrFailed. Where a copy, or what is newly written, would eat into Options.ReserveBytes of
// the disk that it is on, that gives ErrDiskFull. Close ends it with ErrClosed.
func (d *DB) Checkpoint(ctx context.Context, dir string, opt CheckpointOptions) error {
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.state.Stopping, func() { cancel(fault.ErrClosed) })()
	ctx, op := d.state.Signals.Begin(ctx, event.OpCheckpoint, opt.Collection)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	v := d.state.Latest()
	defer v.Release()
	err := d.copier.Checkpoint(ctx, v, dir, copies.CheckpointOptions(opt))
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	err = fault.Annotate(fault.DiskFullElsewhere(err), "checkpoint %s", dir)
	op.End(err, event.Event{Attrs: []slog.Attr{slog.String("to", dir)}})
	return err
}
