package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
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
	if err := d.state.guard.enter(); err != nil {
		return err
	}
	defer d.state.guard.leave()
	ctx, op := d.state.signals.Begin(ctx, event.OpCompact, "")
	defer op.Abandon()
	err := d.compact(ctx, op.Progress)
	op.End(err, event.Event{})
	return err
}

func (d *DB) compact(ctx context.Context, progress event.Progress) error {
	progress("sweep", 0, 0)
	if err := d.sweep(ctx); err != nil {
		return err
	}
	defer d.state.engine.Log.Work.Changes.Add(1)
	if err := d.state.engine.CompactAll(ctx, func(done, total int64) { progress("rewrite", done, total) }); err != nil {
		if failed := d.state.engine.Log.Err(); failed != nil {
			return failed
		}
		return fault.Annotate(fault.ReadError(d.state.engine.FullDisk(err), "store in %s", d.dir), "compact")
	}
	progress("index", 0, 0)
	return d.rebuildAll(ctx)
}

// sweep deletes the keys under which edits have added up to nothing.
func (d *DB) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.state.committer.free(ctx, func(tx *tx) (err error) {
			from, err = tx.sweep(from)
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
	done := map[*codeSet]bool{}
	for {
		built, err := d.state.index(ctx, work.All(), func(_ *view, set *codeSetView) *mih.Build {
			if done[set.set] || set.table == nil || set.table.Wasted() == 0 {
				return nil
			}
			done[set.set] = true
			return set.table.Rebuild()
		})
		if !built || err != nil {
			return err
		}
	}
}
