package db

import (
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
)

// Compact gives back the disk space and the memory of what has been deleted and
// replaced: it rewrites the store, and the indexes in memory of which a part is
// gone. The time is that of reading and writing everything that is stored;
// readers and writers go on. What open snapshots show stays until they are closed.
func (d *DB) Compact(ctx context.Context) error {
	if err := d.writable(); err != nil {
		return err
	}
	if !d.guard.enter() {
		return ErrClosed
	}
	defer d.guard.leave()
	if err := d.sweep(ctx); err != nil {
		return err
	}
	if err := d.store.Flush(); err != nil {
		return d.compactError(err)
	}
	// Keys begin with a kind, of which none is that large.
	if err := d.store.Compact(ctx, []byte{0}, []byte{0xff}, true); err != nil {
		return d.compactError(err)
	}
	return d.rebuildAll(ctx)
}

func (d *DB) compactError(err error) error {
	if failed := d.log.err(); failed != nil {
		return failed
	}
	return fmt.Errorf("fddhdb: compact: %w", err)
}

// sweepKeys is how many keys are looked at while writers wait.
const sweepKeys = 4096

// sweep deletes the keys under which edits have added up to nothing.
func (d *DB) sweep(ctx context.Context) error {
	from := []byte{0}
	for from != nil {
		err := d.committer.submit(ctx, &request{exclusive: func(g *group) (err error) {
			from, err = g.sweep(from)
			return err
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep looks at the next keys and returns where to go on, nil at the end.
func (g *group) sweep(from []byte) (next []byte, err error) {
	it, err := g.c.store.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, readError(err, "keys from %x", from)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = readError(cerr, "keys from %x", from)
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
			return nil, readError(err, "key %x", key)
		}
		if codec.EmptySum(key, value) {
			if err := g.batch.Delete(key, nil); err != nil {
				return nil, err
			}
			delete(g.c.edits, string(key))
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
		built, err := d.build(ctx, allWorkers(), func(_ *view, set *codeSetView) *mih.Build {
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
