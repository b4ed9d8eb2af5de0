package search

import (
	"context"
	"math/rand/v2"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// EachOfSample calls f with n of the items that match an expression, or with all if there are fewer, in
// ascending order of rows, see EachItem. The seed decides the choice; every set of n items is equally likely.
func EachOfSample(ctx context.Context, cv *state.CollectionView, r pebble.Reader, n int, seed uint64, expr string, args []any, f func(*Item) error) error {
	rows, err := Matching(ctx, cv, r, expr, args)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = cv.Live
	}
	if rows, err = sample(rows, n, seed); err != nil {
		return err
	}
	return EachKeyOf(cv, r, rows, func(row uint32, key string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		it, err := ReadItem(cv, r, row, key)
		if err != nil {
			return err
		}
		return f(it)
	})
}

// sample returns n of the rows, by Floyd's algorithm, which draws one number for each.
func sample(rows *roaring.Bitmap, n int, seed uint64) (*roaring.Bitmap, error) {
	all := rows.GetCardinality()
	if uint64(n) >= all {
		return rows, nil
	}
	random := rand.New(rand.NewPCG(seed, 0))
	places, out := roaring.New(), roaring.New()
	for last := all - uint64(n); last < all; last++ {
		at := uint32(random.Uint64N(last + 1))
		if !places.CheckedAdd(at) {
			at = uint32(last)
			places.Add(at)
		}
		row, err := rows.Select(at)
		if err != nil {
			return nil, fault.Corrupt(err, "row %d of %d", at, all)
		}
		out.Add(row)
	}
	return out, nil
}
