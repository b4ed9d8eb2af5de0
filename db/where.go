package db

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Items yields all items in database order, which is that of their rows: the
// order in which they were first put, an item that was deleted in between counting
// as new. It shows them as they are when the iteration starts. An error ends it.
func (c *Collection) Items(ctx context.Context) iter.Seq2[*Item, error] { return c.ItemsWhere(ctx, "") }

// ItemsWhere yields the items that match the expression, see Query.Where, in
// database order, as they are when the iteration starts; the empty one matches
// all, as Items. args are the values of its placeholders, see Query.Args. Only the items
// that match are read. An error ends it.
func (c *Collection) ItemsWhere(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
	c = c.orNone()
	return func(yield func(*Item, error) bool) {
		err := c.read(func(v *state.View, cv *state.CollectionView) error {
			rows, err := search.Matching(ctx, cv, v.Snap, where, args)
			if err != nil || rows != nil && rows.IsEmpty() {
				return err
			}
			return eachItem(cv, v.Snap, rows, func(it *Item) error {
				switch {
				case ctx.Err() != nil:
					return ctx.Err()
				case !yield(it, nil):
					return record.ErrStopped
				}
				return nil
			})
		})
		if err != nil && !errors.Is(err, record.ErrStopped) {
			yield(nil, err)
		}
	}
}

// CountWhere returns the number of items that match the expression, see
// Query.Where; the empty one matches all. args are the values of its placeholders, see
// Query.Args. It reads no item.
func (c *Collection) CountWhere(ctx context.Context, where string, args ...any) (int, error) {
	c = c.orNone()
	return c.CountUpTo(ctx, math.MaxInt, where, args...)
}

// CountUpTo is CountWhere that stops when it has found so many items, 1 or more; where it
// returns as many there may be more. It looks at 65,536 rows at a time.
func (c *Collection) CountUpTo(ctx context.Context, limit int, where string, args ...any) (int, error) {
	c = c.orNone()
	if limit < 1 {
		return 0, fault.Invalid("count up to %d items: 1 or more are possible", limit)
	}
	n := 0
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		if where == "" {
			n = cv.Items
			return search.NoArgs(args)
		}
		return search.EachMatching(ctx, cv, v.Snap, where, args, func(_ uint16, found *roaring.Bitmap) bool {
			n += int(found.GetCardinality())
			return n < limit
		})
	})
	if err != nil {
		return 0, err
	}
	return min(n, limit), nil
}

// DeleteWhere deletes the items that match the expression, see Query.Where, all in
// one synced commit, and returns how many there were. args are the values of its
// placeholders, see Query.Args.
//
// What matches is decided when it is deleted: a write that comes back before
// DeleteWhere is called counts, and none comes in between. Other writers wait for
// as long as that takes. More than a commit can hold, some millions, or with what they
// have taught a GiB, is an ErrInvalid: narrow the expression.
//
// The empty expression is an ErrInvalid, as most likely the caller has lost one. To delete
// all items, drop the collection and create it again, or say
//
//	NOT label = ''
func (c *Collection) DeleteWhere(ctx context.Context, where string, args ...any) (int, error) {
	c = c.orNone()
	if err := c.db.state.Guard.Enter(); err != nil {
		return 0, err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return 0, err
	}
	if where == "" {
		return 0, &fault.WhereError{Column: 1, Reason: "an empty expression would delete all items: say NOT label = '' to delete them, or drop the collection"}
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return 0, err
	}
	ctx, call := c.db.state.Signals.Call(ctx, event.OpWrite, c.name)
	n := 0
	err := c.inside().Free(ctx, func(tx *state.Tx, s *state.CollectionState) (err error) {
		n, err = deleteWhere(ctx, tx, c.db.state.Current.Load(), s, where, args)
		tx.Empty = n == 0
		return err
	})
	c.db.counters.wrote(&call, n, err)
	if err != nil {
		return 0, err
	}
	c.db.state.Committer.Figures.Deleted.Add(uint64(n))
	return n, nil
}

// deleteWhere deletes what matches in the view, which is the present state.
func deleteWhere(ctx context.Context, tx *state.Tx, v *state.View, s *state.CollectionState, where string, args []any) (int, error) {
	cv, err := v.Collection(s.ID, s.Name)
	if err != nil {
		return 0, err
	}
	rows, err := search.Matching(ctx, cv, v.Snap, where, args)
	if err != nil {
		return 0, err
	}
	return tx.DeleteItems(ctx, s, int(rows.GetCardinality()), func(f func(row uint32, key string) error) error {
		return forEachKey(cv, v.Snap, rows, f)
	})
}

// forEachKey calls f with the rows and the keys of their items, in order. It reads
// each block of keys once.
func forEachKey(cv *state.CollectionView, r pebble.Reader, rows *roaring.Bitmap, f func(row uint32, key string) error) error {
	for it := rows.Iterator(); it.HasNext(); {
		block := it.PeekNext() / codec.BlockRows
		value, err := record.Get(r, codec.NumberKey(codec.KindRowKeys, cv.ID, block))
		if err != nil {
			return fault.ReadError(err, "keys of block %d", block)
		}
		var keys codec.Block // empty where there is none
		if value != nil {
			if keys, err = codec.DecodeBlock(value); err != nil {
				return fault.Corrupt(err, "keys of block %d", block)
			}
		}
		for it.HasNext() && it.PeekNext()/codec.BlockRows == block {
			row := it.Next()
			entry, ok := keys.Lookup(byte(row))
			if !ok {
				return fault.Corrupt(errors.New("no such row"), "key of row %d", row)
			}
			if err := f(row, string(entry)); err != nil {
				return err
			}
		}
	}
	return nil
}
