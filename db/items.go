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

// Has reports whether there is an item with this key. It reads one small record: some microseconds, or less
// from the cache.
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

// Keys yields the keys with a prefix, in the order of their bytes; the empty prefix means all. It shows the
// state in which the iteration starts (of a Snapshot: the snapshot), and holds that state until it ends. It
// reads one small record a key, and no items. An error ends it.
func (c *Collection) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(string) error) error {
		return search.EachKey(ctx, cv, v.Snap, prefix, func(_ uint32, key string) error { return yield(key) })
	})
}

// Items yields all items in database order: the order of their rows, in which they were first put; an item that
// was deleted and put again is new. It shows the state in which the iteration starts. An error ends it.
func (c *Collection) Items(ctx context.Context) iter.Seq2[*Item, error] { return c.ItemsWhere(ctx, "") }

// ItemsWhere yields the items that match the expression, see Query.Where, in database order, of the state in
// which the iteration starts; the empty expression matches all. args are the values of its placeholders, see
// Query.Args. It reads only matching items. An error ends it.
func (c *Collection) ItemsWhere(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		return search.EachItem(ctx, cv, v.Snap, where, args, func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// Sample yields n, 1 or more, random items of those that match the expression, see Query.Where, or all if there
// are fewer; the empty expression matches all. args are the values of its placeholders, see Query.Args. Every
// set of n items is as likely as any other; the same seed yields the same items until something is written.
// They come in database order, each at the cost of a Get. An error ends it.
func (c *Collection) Sample(ctx context.Context, n int, seed uint64, where string, args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		if n < 1 {
			return fault.Invalid("a sample of %d items: 1 or more are possible", n)
		}
		return search.EachOfSample(ctx, cv, v.Snap, n, seed, where, args, func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// ItemsByKey yields the items whose keys have a prefix, in the order of the bytes of their keys; the empty prefix
// means all. It shows the state in which the iteration starts, and holds that state until it ends. An error
// ends it.
//
// Items are stored in database order, see Items. So each item costs a Get: several times as much as an item of
// Items, unless items were put in the order of their keys.
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

// CountWhere returns the number of items that match the expression, see Query.Where; the empty expression
// matches all. args are the values of its placeholders, see Query.Args. It reads items only for fields without
// an index.
func (c *Collection) CountWhere(ctx context.Context, where string, args ...any) (int, error) {
	return c.CountUpTo(ctx, math.MaxInt, where, args...)
}

// CountUpTo is CountWhere that stops at limit items, 1 or more: if it returns limit, there may be more. It looks
// at 65,536 rows at a time.
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
