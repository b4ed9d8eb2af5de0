package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
)

// Compact gives back the disk space and the memory of what has been deleted and
// replaced: it rewrites the store, and the indexes in memory of which a part is
// gone. The time is that of reading and writing everything that is stored;
// readers and writers go on. What open snapshots show stays until they are closed; a reader that
// holds tables for long holds Compact up by a second at most. It takes
// up to some 256 MiB of disk space more while it lasts, less where less is free, and gives
// ErrDiskFull where what stays does not fit.
//
// Events and Activity tell how far it is: the stage "sweep", of unknown length; "rewrite", in
// bytes of tables, some 256 MiB at a time; and "index", of unknown length.
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

// WaitForIndex returns when the codes of all collections are in memory, those that are due to be
// indexed are, and so are projections, as far as Options.RerankCacheBytes goes. Searches do not
// need it: they give the same answers before, later.
func (d *DB) WaitForIndex(ctx context.Context) error {
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	return d.state.IndexAll(ctx)
}
