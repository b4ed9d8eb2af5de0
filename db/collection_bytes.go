package db

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// DiskBytes estimates how many bytes on disk are the collection's, all its spaces included. The
// store keeps keys of all collections in the same tables. Of each kind of record it takes
// the sizes of the tables that hold nothing else, and of the blocks in other tables; where that is
// little, not more than the records have. So much of it as stands in the log
// alone, the latest writes, may be missing. The sum over the collections is about what the tables
// of the store have, see Stats.DiskBytes for all.
//
// It reads at most some 256 KiB for each kind of record, 5 MB in all: a fraction of a millisecond
// for a small collection and some milliseconds for any other.
func (c *Collection) DiskBytes(ctx context.Context) (int64, error) {
	c = c.orNone()
	total := int64(0)
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		for _, kind := range record.Kinds(record.OfCollection) {
			n, err := c.db.diskBytes(ctx, v, codec.CollectionKey(kind, cv.ID))
			if err != nil {
				return fault.Annotate(err, "the size of collection %q", cv.Name)
			}
			total += n
		}
		return nil
	})
	return total, err
}

// countedBytes is how many bytes of records are counted one by one. A few blocks have as much:
// with fewer the blocks at the ends, which have other records too, would be most of an estimate.
const countedBytes = 256 << 10

// errLarge ends the counting of records.
var errLarge = errors.New("more than are counted")

// DiskBytes estimates the bytes of the records that have a prefix.
func (d *DB) diskBytes(ctx context.Context, v *state.View, prefix []byte) (int64, error) {
	lo, hi := prefix, codec.PrefixEnd(prefix)
	counted := int64(0)
	err := record.ForEachIn(v.Snap, lo, hi, func(key, value []byte) error {
		if counted += int64(len(key) + len(value)); counted > countedBytes {
			return errLarge
		}
		return nil
	})
	large := errors.Is(err, errLarge)
	if err != nil && !large {
		return 0, err
	}
	n, err := d.state.Engine.DB.EstimateDiskUsage(lo, hi)
	switch {
	case err != nil:
		return 0, fault.ReadError(err, "sizes of tables")
	case n == 0: // it is in no table yet
		return counted, ctx.Err()
	case large:
		return int64(n), ctx.Err()
	}
	return min(int64(n), counted), ctx.Err() // compressed, the blocks may be smaller
}
