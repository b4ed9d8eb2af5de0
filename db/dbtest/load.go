package dbtest

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db"
)

// Batches cuts items into slices of size items, the last one possibly shorter, as from
// a stream that arrives in parts. The slices belong to the receiver.
func Batches(items iter.Seq[*db.Item], size int) iter.Seq[[]*db.Item] {
	return func(yield func([]*db.Item) bool) {
		var some []*db.Item
		for it := range items {
			if some = append(some, it); len(some) >= size {
				if !yield(some) {
					return
				}
				some = nil
			}
		}
		if len(some) > 0 {
			yield(some)
		}
	}
}

// Load puts items into a collection of d, 10,000 in a commit. After an error the items
// of earlier commits are there.
func Load(ctx context.Context, d *db.DB, c *db.Collection, items iter.Seq[*db.Item]) error {
	for some := range Batches(items, 10_000) {
		b := d.NewBatch()
		for _, it := range some {
			if err := b.Put(c, it); err != nil {
				return err
			}
		}
		if err := b.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
