package db

import (
	"context"
	"iter"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Has reports whether there is an item with this key. It reads one small record, and
// nothing of the item: some microseconds, or less if the record is in the cache.
func (c *Collection) Has(ctx context.Context, key string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (found bool, err error) {
		if len(key) <= record.MaxKeyBytes { // else there can be none
			_, found, err = record.RowOf(v.Snap, cv.ID, key)
		}
		return found, err
	})
}

// Keys yields the keys that begin with prefix, in the order of their bytes; the empty prefix
// means all. It shows those that there are when the iteration starts, which may be of a
// Snapshot, and holds that state until it ends. It reads one small record a key, in order,
// and nothing of the items. An error ends it.
func (c *Collection) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(string) error) error {
		return search.EachKey(ctx, cv, v.Snap, prefix, func(_ uint32, key string) error { return yield(key) })
	})
}

// Items yields all items in database order, which is that of their rows: the
// order in which they were first put, an item that was deleted in between counting
// as new. It shows them as they are when the iteration starts. An error ends it.
func (c *Collection) Items(ctx context.Context) iter.Seq2[*Item, error] { return c.ItemsWhere(ctx, "") }

// ItemsWhere yields the items that match the expression, see Query.Where, in
// database order, as they are when the iteration starts; the empty one matches
// all, as Items. args are the values of its placeholders, see Query.Args. Only the items
// that match are read. An error ends it.
func (c *Collection) ItemsWhere(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		return search.EachItem(ctx, cv, v.Snap, where, args, func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// Sample yields n, 1 or more, of the items that match the expression, see Query.Where, or all where
// there are fewer; the empty one matches all. args are the values of its placeholders, see Query.Args.
// Which they are the seed decides: every n of them are as likely as any others, and the same seed
// gives the same ones until something is written. They come in database order, each at the cost of a
// Get. An error ends it.
func (c *Collection) Sample(ctx context.Context, n int, seed uint64, where string, args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		if n < 1 {
			return fault.Invalid("a sample of %d items: 1 or more are possible", n)
		}
		return search.EachOfSample(ctx, cv, v.Snap, n, seed, where, args, func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// ItemsByKey yields the items whose keys begin with prefix, in the order of the bytes of
// their keys; the empty prefix means all. It shows them as they are when the iteration
// starts, and holds that state until it ends. An error ends it.
//
// Items are stored in database order, see Items. Each costs what Get costs: several times
// as much as an item of Items, unless items have been put in the order of their keys.
func (c *Collection) ItemsByKey(ctx context.Context, prefix string) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		return search.EachKey(ctx, cv, v.Snap, prefix, func(row uint32, key string) error {
			it, err := search.ReadItem(cv, v.Snap, row, key)
			if err != nil {
				return err
			}
			return yield(itemOf(cv, it))
		})
	})
}

// CountWhere returns the number of items that match the expression, see
// Query.Where; the empty one matches all. args are the values of its placeholders, see
// Query.Args. It reads no item, but where a field of the expression has no index.
func (c *Collection) CountWhere(ctx context.Context, where string, args ...any) (int, error) {
	return c.CountUpTo(ctx, math.MaxInt, where, args...)
}

// CountUpTo is CountWhere that stops when it has found so many items, 1 or more; where it
// returns as many there may be more. It looks at 65,536 rows at a time.
func (c *Collection) CountUpTo(ctx context.Context, limit int, where string, args ...any) (int, error) {
	if limit < 1 {
		return 0, fault.Invalid("count up to %d items: 1 or more are possible", limit)
	}
	return look(c, func(v *state.View, cv *state.CollectionView) (n int, err error) {
		if where == "" {
			return min(cv.Items, limit), search.NoArgs(args)
		}
		err = search.EachMatching(ctx, cv, v.Snap, where, args, func(_ uint16, found *roaring.Bitmap) bool {
			n += int(found.GetCardinality())
			return n < limit
		})
		return min(n, limit), err
	})
}
