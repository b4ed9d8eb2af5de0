package db

import (
	"context"
	"iter"

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

// Items yields the items that match the expression, see Query.Where, in database order; the empty expression
// matches all. Database order is the order of their rows, in which they were first put; an item that was deleted
// and put again is new. args are the values of the placeholders, see Query.Args. Items shows the state in which
// the iteration starts. It reads only matching items. An error ends it.
func (c *Collection) Items(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
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

// Count returns the number of items that match the expression, see Query.Where. The empty expression matches
// all, at no cost. args are the values of the placeholders, see Query.Args. Count reads items only for fields
// without an index.
func (c *Collection) Count(ctx context.Context, where string, args ...any) (int, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (n int, err error) {
		if where == "" {
			return cv.Items, search.NoArgs(args)
		}
		err = search.EachMatching(ctx, cv, v.Snap, where, args, func(_ uint16, found *roaring.Bitmap) bool {
			n += int(found.GetCardinality())
			return true
		})
		return n, err
	})
}
