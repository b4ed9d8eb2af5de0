package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// Compact gives back the disk space and the memory of what has been deleted and
// replaced: it rewrites the store, and the indexes in memory of which a part is
// gone. The time is that of reading and writing everything that is stored;
// readers and writers go on. What open snapshots show stays until they are closed. It takes
// some 256 MiB of disk space more while it lasts, and gives ErrDiskFull where these are not free.
//
// Events and Activity tell how far it is: the stage "sweep", of unknown length; "rewrite", in
// bytes of tables, some 256 MiB at a time; and "index", of unknown length.
func (d *DB) Compact(ctx context.Context) error {
	d = d.orNone()
	if err := d.writable(); err != nil {
		return err
	}
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	ctx, op := d.state.Signals.Begin(ctx, event.OpCompact, "")
	defer op.Abandon()
	err := d.compact(ctx, op.Progress)
	op.End(err, event.Event{})
	return err
}

// compact is Compact without its event.
func (d *DB) compact(ctx context.Context, progress event.Progress) error {
	progress("sweep", 0, 0)
	if err := d.sweep(ctx); err != nil {
		return err
	}
	defer d.state.Engine.Log.Work.Changes.Add(1)
	if err := d.state.Engine.CompactAll(ctx, func(done, total int64) { progress("rewrite", done, total) }); err != nil {
		if failed := d.state.Engine.Log.Err(); failed != nil {
			return failed
		}
		return fault.Annotate(fault.ReadError(d.state.Engine.FullDisk(err), "store in %s", d.dir), "compact")
	}
	progress("index", 0, 0)
	return d.rebuildAll(ctx)
}

// sweep deletes the keys under which edits have added up to nothing.
func (d *DB) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.state.Committer.Free(ctx, func(tx *state.Tx) (err error) {
			from, err = tx.Sweep(from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuildAll builds the indexes anew of which some part is gone.
func (d *DB) rebuildAll(ctx context.Context) error {
	if err := d.waitForCodes(ctx); err != nil {
		return err
	}
	done := map[*state.CodeSet]bool{}
	for {
		built, err := d.state.Index(ctx, work.All(), func(_ *state.View, set *state.CodeSetView) *mih.Build {
			if done[set.Set] || set.Table == nil || set.Table.Wasted() == 0 {
				return nil
			}
			done[set.Set] = true
			return set.Table.Rebuild()
		})
		if !built || err != nil {
			return err
		}
	}
}
