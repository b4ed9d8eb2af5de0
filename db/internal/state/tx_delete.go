package state

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// DeleteItems deletes n items of a collection, whose rows and keys each yields, in this
// transaction, which does nothing else, and returns n. Rows and keys have to be those of the
// present state. More than one commit can hold is an ErrInvalid; with any error, that of each
// or of the context too, nothing has changed.
func (tx *Tx) DeleteItems(ctx context.Context, s *CollectionState, n int, each func(f func(row uint32, key string) error) error) (int, error) {
	tooMany := fault.Invalid("%d items, with what they have taught (docs/VERSIONING.md), are too many to delete in one commit: narrow the expression", n)
	if n*((&record.Item{}).Bytes()+s.CodeBytes()) > record.MaxBatchBytes { // at least, before anything is read
		return 0, tooMany
	}
	all := &Request{Changes: make([]*Change, 0, n)}
	err := each(func(row uint32, key string) error {
		tx.rows[itemKey{s.ID, key}] = rowState{row, true}
		all.Changes = append(all.Changes, &Change{Collection: s.ID, Kind: DeleteItem, Item: &record.Item{Key: key}})
		return ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	// In parts, so that the context is asked now and then; all are resolved before one is
	// applied.
	bytes := n * 16 * len(s.Modalities) // features to delete
	for part := range slices.Chunk(all.Changes, 1024) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		size, err := tx.Resolve(&Request{Changes: part})
		if err != nil {
			return 0, err
		}
		if bytes += size; bytes > record.MaxBatchBytes {
			return 0, tooMany
		}
	}
	// An error here could only be that of a batch that is too large.
	return n, tx.Apply(all)
}
