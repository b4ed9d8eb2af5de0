package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// EachKeyOf calls f with the rows and the keys of their items, in order. It reads each block of keys once.
func EachKeyOf(cv *state.CollectionView, r pebble.Reader, rows *roaring.Bitmap, f func(row uint32, key string) error) error {
	for it := rows.Iterator(); it.HasNext(); {
		block := it.PeekNext() / codec.BlockRows
		value, err := record.Get(r, codec.NumberKey(codec.KindRowKeys, cv.ID, block))
		if err != nil {
			return fault.ReadError(err, "keys of block %d", block)
		}
		var keys codec.Block // empty if the block is missing
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

// EachKey calls f with the keys that begin with prefix and the rows of their items, in the order of the keys.
// An error of f ends it.
func EachKey(ctx context.Context, cv *state.CollectionView, r pebble.Reader, prefix string, f func(row uint32, key string) error) error {
	from := len(codec.ItemKey(cv.ID, ""))
	return record.ForEach(r, codec.ItemKey(cv.ID, prefix), func(key, value []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(value) != 4 {
			return fault.Corrupt(fmt.Errorf("%d bytes", len(value)), "row of item %q", key[from:])
		}
		return f(binary.BigEndian.Uint32(value), string(key[from:]))
	})
}
