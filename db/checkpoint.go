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

// CheckpointOptions say what a checkpoint holds. With the zero value it holds everything.
type CheckpointOptions struct {
	// Collection, if not empty, is the only collection of the checkpoint, with all its
	// spaces. The collection, its rows, codes and spaces keep their numbers.
	Collection string

	// IndexOnly leaves out the vectors of items, statistics, lessons, and spaces that are
	// being built. Searches by vector, code or key, filters, Get and counts work as before.
	// Such collections say so (Schema.IndexOnly); writes, training and updates of them give
	// ErrReadOnly. A collection of given codes is copied whole.
	IndexOnly bool

	// Progress hears the bytes written, and about how many there are, in the stage "copy" of a
	// checkpoint that does not hold everything.
	Progress event.Progress
}

// Checkpoint writes the present state of the database into a new folder, as a database of its own
// that another process may open while this one goes on. Reads and writes go on meanwhile. The folder
// appears when it is complete and durable. Until then its name ends in ".incomplete"; after an error
// it is gone, and if the process ends, the next checkpoint to the folder deletes it.
//
// A checkpoint of everything shares the tables of the store by hard links. It takes as long as a
// flush, and no space at first; later, tables that this database replaces stay on disk as long as
// the checkpoint does. Without hard links, or on another file system, Checkpoint copies the tables.
// Writers wait while it links or copies. A checkpoint that leaves something out has tables of its own:
// it takes the time of reading and writing its contents, on half of GOMAXPROCS, with some megabytes
// of memory for each, and meanwhile this database keeps replaced tables. Its files have nothing of
// what is left out. It has a UUID of its own.
//
// Errors: ErrExists for a folder that exists, ErrInvalid for one inside the folder of a database,
// ErrLocked for one that is being made, ErrNotFound for an unknown collection, ErrCorrupt for damage,
// ErrFailed for a failed database, ErrDiskFull if a copy would eat into Options.ReserveBytes of its
// disk, ErrClosed after Close.
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
