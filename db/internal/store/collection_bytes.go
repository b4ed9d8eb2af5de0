package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// CollectionBytes estimates the bytes of the tables that hold the records of a collection, see
// db.Collection.DiskBytes. r is a snapshot of the store.
func (e *Engine) CollectionBytes(ctx context.Context, r pebble.Reader, collection uint32) (int64, error) {
	total := int64(0)
	for _, kind := range record.Kinds(record.OfCollection) {
		n, err := e.bytesUnder(ctx, r, codec.CollectionKey(kind, collection))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// countedBytes is the number of bytes up to which records are counted one by one. A few blocks have as much.
// For fewer records most of an estimate would be the first and the last block, which have other records too.
const countedBytes = 256 << 10

// errLarge ends the counting of records.
var errLarge = errors.New("more than are counted")

// bytesUnder estimates the bytes of the records with a prefix.
func (e *Engine) bytesUnder(ctx context.Context, r pebble.Reader, prefix []byte) (int64, error) {
	lo, hi := prefix, codec.PrefixEnd(prefix)
	counted := int64(0)
	err := record.ForEachIn(r, lo, hi, func(key, value []byte) error {
		if counted += int64(len(key) + len(value)); counted > countedBytes {
			return errLarge
		}
		return nil
	})
	large := errors.Is(err, errLarge)
	if err != nil && !large {
		return 0, err
	}
	n, err := e.DB.EstimateDiskUsage(lo, hi)
	switch {
	case err != nil:
		return 0, fault.ReadError(err, "sizes of tables")
	case n == 0: // no table has the records yet
		return counted, ctx.Err()
	case large:
		return int64(n), ctx.Err()
	}
	return min(int64(n), counted), ctx.Err() // compressed blocks may be smaller
}
