package db

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// deleteItems deletes n items of a collection, whose rows and keys each yields, in this
// transaction, and returns n.
func (tx *tx) deleteItems(ctx context.Context, s *collectionState, n int, each func(f func(row uint32, key string) error) error) (int, error) {
	tooMany := fault.Invalid("%d items, with what they have taught (docs/VERSIONING.md), are too many to delete in one commit: narrow the expression", n)
	if n*((&record.Item{}).Bytes()+s.codeBytes()) > record.MaxBatchBytes { // at least, before anything is read
		return 0, tooMany
	}
	all := &request{changes: make([]*change, 0, n)}
	err := each(func(row uint32, key string) error {
		tx.rows[itemKey{s.ID, key}] = rowState{row, true}
		all.changes = append(all.changes, &change{collection: s.ID, kind: deleteItem, item: &record.Item{Key: key}})
		return ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	bytes := n * 16 * len(s.Modalities) // features to delete
	for part := range slices.Chunk(all.changes, 1024) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size, err := tx.resolve(&request{changes: part})
		if err != nil {
			return 0, err
		}
		if bytes += size; bytes > record.MaxBatchBytes {
			return 0, tooMany
		}
	}
	// An error here could only be that of a batch that is too large.
	return n, tx.apply(all)
}
