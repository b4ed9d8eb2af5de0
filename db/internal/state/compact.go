package state

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// Compact rewrites the store, and the indexes in memory that contain removed codes, to free the space of
// deleted and replaced data. Progress has the stages "sweep", "rewrite", in bytes of tables, and "index".
func (d *Database) Compact(ctx context.Context, progress event.Progress) error {
	progress("sweep", 0, 0)
	if err := d.sweep(ctx); err != nil {
		return err
	}
	defer d.Engine.Log.Work.Changes.Add(1)
	if err := d.Engine.CompactAll(ctx, func(done, total int64) { progress("rewrite", done, total) }); err != nil {
		if failed := d.Engine.Log.Err(); failed != nil {
			return failed
		}
		return fault.Annotate(fault.ReadError(d.Engine.FullDisk(err), "store in %s", d.Engine.Dir), "compact")
	}
	progress("index", 0, 0)
	return d.rebuildAll(ctx)
}

// sweep deletes the keys whose merged edits amount to nothing.
func (d *Database) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.Committer.Free(ctx, func(tx *Tx) (err error) {
			from, err = tx.Sweep(from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rebuildAll rebuilds the indexes that contain removed codes.
func (d *Database) rebuildAll(ctx context.Context) error {
	done := map[*CodeSet]bool{}
	return d.indexEach(ctx, func(_ *View, set *CodeSetView) *mih.Build {
		if done[set.Set] || set.Table == nil || set.Table.Wasted() == 0 {
			return nil
		}
		done[set.Set] = true
		return set.Table.Rebuild()
	})
}

// IndexAll returns when the codes of all collections are in memory, all due builds have run, and the rows for
// reranking are loaded as far as the memory goes.
func (d *Database) IndexAll(ctx context.Context) error {
	if err := d.indexEach(ctx, d.Due); err != nil {
		return err
	}
	for d.loadRerank(ctx) {
	}
	return ctx.Err()
}

// indexEach waits for the codes of all collections. Then it runs the builds that choose returns, on all
// cores, until choose returns none. See Index.
func (d *Database) indexEach(ctx context.Context, choose func(*View, *CodeSetView) *mih.Build) error {
	if err := d.Loaded(ctx); err != nil {
		return err
	}
	for {
		built, err := d.Index(ctx, work.All(), choose)
		if !built || err != nil {
			return err
		}
	}
}
