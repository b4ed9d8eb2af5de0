package db

import (
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
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
	if err := d.guard.enter(); err != nil {
		return err
	}
	defer d.guard.leave()
	ctx, op := d.signals.Begin(ctx, event.OpCompact, "")
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
	defer d.engine.Log.Work.Changes.Add(1)
	if err := d.engine.CompactAll(ctx, func(done, total int64) { progress("rewrite", done, total) }); err != nil {
		if failed := d.engine.Log.Err(); failed != nil {
			return failed
		}
		return fault.Annotate(fault.ReadError(d.engine.FullDisk(err), "store in %s", d.dir), "compact")
	}
	progress("index", 0, 0)
	return d.rebuildAll(ctx)
}

// sweepKeys is how many keys are looked at while writers wait.
const sweepKeys = 4096

// sweep deletes the keys under which edits have added up to nothing.
func (d *DB) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.committer.free(ctx, func(tx *tx) (err error) {
			from, err = tx.sweep(from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep looks at the next keys and returns where to go on, nil at the end.
func (tx *tx) sweep(from []byte) (next []byte, err error) {
	it, err := tx.c.store.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, fault.ReadError(err, "keys from %x", from)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "keys from %x", from)
		}
	}()
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		if seen++; seen > sweepKeys {
			return slices.Clone(it.Key()), nil
		}
		key := it.Key()
		if !codec.Merged(key[0]) {
			// Nothing of this kind is merged: on to the next one.
			if key[0] == 0xff || !it.SeekGE([]byte{key[0] + 1}) {
				return nil, nil
			}
			key = it.Key()
			if !codec.Merged(key[0]) {
				return slices.Clone(key), nil
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, fault.ReadError(err, "key %x", key)
		}
		if codec.EmptySum(key, value) {
			if err := tx.batch.Delete(key, nil); err != nil {
				return nil, err
			}
			delete(tx.c.edits, string(key))
		}
	}
	return nil, nil
}

// rebuildAll builds the indexes anew of which some part is gone.
func (d *DB) rebuildAll(ctx context.Context) error {
	if err := d.waitForCodes(ctx); err != nil {
		return err
	}
	done := map[*codeSet]bool{}
	for {
		built, err := d.index(ctx, work.All(), func(_ *view, set *codeSetView) *mih.Build {
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
