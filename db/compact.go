package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
)

// Compact gives back the disk space and the memory of deleted and replaced records: it rewrites the store, and
// indexes in memory that have holes. It takes the time of reading and writing the whole store; reads and writes
// go on. Records that open snapshots show stay until these are closed; a long reader delays Compact by a second
// at most. It needs some 256 MiB of free disk space, or less with more steps, and returns ErrDiskFull if the
// rewritten tables do not fit.
//
// Events and Activity tell how far it is: the stage "sweep", of unknown length; "rewrite", in bytes of tables,
// some 256 MiB at a time; and "index", of unknown length.
func (d *DB) Compact(ctx context.Context) error {
	if err := d.writable(); err != nil {
		return err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	ctx, op := d.state.Signals.Begin(ctx, event.OpCompact, "")
	defer op.Abandon()
	err := d.state.Compact(ctx, op.Progress)
	op.End(err, event.Event{})
	return err
}

// WaitForIndex returns when the codes of all collections are in memory and indexed, and projections are in
// memory as far as Options.RerankCacheBytes allows. Searches before that give the same answers, more slowly.
func (d *DB) WaitForIndex(ctx context.Context) error {
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	return d.state.IndexAll(ctx)
}
