package learn

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// Choices of rows of a collection to learn from or to measure.

// evenly returns limit rows spread evenly over a set, all if it has no more. The result
// belongs to the caller.
func evenly(set *roaring.Bitmap, limit int) *roaring.Bitmap {
	n := int(set.GetCardinality())
	if n <= limit {
		return set.Clone()
	}
	some := roaring.New()
	for i := range limit {
		row, _ := set.Select(uint32(i * n / limit)) // no error: i*n/limit < n
		some.Add(row)
	}
	return some
}

// firstRows returns the lowest limit rows of a set. If the set has no more, the result is the
// set itself, so do not write to it.
func firstRows(set *roaring.Bitmap, limit int) *roaring.Bitmap {
	if set.GetCardinality() <= uint64(limit) {
		return set
	}
	first := roaring.New()
	for it := set.Iterator(); it.HasNext() && limit > 0; limit-- {
		first.Add(it.Next())
	}
	return first
}

// carriers returns the rows that carry at least one of the labels, by id.
func carriers(r pebble.Reader, collection uint32, labels []uint32) (*roaring.Bitmap, error) {
	all := roaring.New()
	for _, id := range labels {
		rows, err := record.LabelRows(r, collection, id)
		if err != nil {
			return nil, err
		}
		all.Or(rows)
	}
	return all, nil
}
