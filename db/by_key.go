package db

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Has reports whether there is an item with this key. It reads one small record, and
// nothing of the item: some microseconds, or less if the record is in the cache.
func (c *Collection) Has(ctx context.Context, key string) (bool, error) {
	c = c.orNone()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	found := false
	err := c.read(func(v *state.View, cv *state.CollectionView) (err error) {
		if len(key) <= record.MaxKeyBytes { // else there can be none
			_, found, err = record.RowOf(v.Snap, cv.ID, key)
		}
		return err
	})
	return found, err
}

// Keys yields the keys that begin with prefix, in the order of their bytes; the empty prefix
// means all. It shows those that there are when the iteration starts, which may be of a
// Snapshot, and holds that state until it ends. It reads one small record a key, in order,
// and nothing of the items. An error ends it.
func (c *Collection) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c = c.orNone()
	return func(yield func(string, error) bool) {
		err := c.read(func(v *state.View, cv *state.CollectionView) error {
			return eachKey(ctx, v, cv, prefix, func(_ uint32, key string) bool { return yield(key, nil) })
		})
		if err != nil && !errors.Is(err, record.ErrStopped) {
			yield("", err)
		}
	}
}

// ItemsByKey yields the items whose keys begin with prefix, in the order of the bytes of
// their keys; the empty prefix means all. It shows them as they are when the iteration
// starts, and holds that state until it ends. An error ends it.
//
// Items are stored in database order, see Items. Each costs what Get costs: several times
// as much as an item of Items, unless items have been put in the order of their keys.
func (c *Collection) ItemsByKey(ctx context.Context, prefix string) iter.Seq2[*Item, error] {
	c = c.orNone()
	return func(yield func(*Item, error) bool) {
		err := c.read(func(v *state.View, cv *state.CollectionView) error {
			var failed error
			err := eachKey(ctx, v, cv, prefix, func(row uint32, key string) bool {
				var it *Item
				if it, failed = readItem(cv, v.Snap, row, key); failed != nil {
					return false
				}
				return yield(it, nil)
			})
			if failed != nil {
				return failed
			}
			return err
		})
		if err != nil && !errors.Is(err, record.ErrStopped) {
			yield(nil, err)
		}
	}
}

// eachKey calls f with the keys that begin with prefix and the rows of their items, in the
// order of the keys. It gives record.ErrStopped when f returns false.
func eachKey(ctx context.Context, v *state.View, cv *state.CollectionView, prefix string, f func(row uint32, key string) bool) error {
	from := len(codec.ItemKey(cv.ID, ""))
	return record.ForEach(v.Snap, codec.ItemKey(cv.ID, prefix), func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(value) != 4 {
			return fault.Corrupt(fmt.Errorf("%d bytes", len(value)), "row of item %q", key[from:])
		}
		if !f(binary.BigEndian.Uint32(value), string(key[from:])) {
			return record.ErrStopped
		}
		return nil
	})
}
