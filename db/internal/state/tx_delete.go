package state

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// DeleteItems deletes the n items of a collection whose rows and keys each yields, and returns n. The
// transaction does nothing else. Rows and keys must be of the present state. More than one commit can hold is
// an ErrInvalid. After any error but ErrFailed, also one of each or of the context, nothing has changed.
func (tx *Tx) DeleteItems(ctx context.Context, s *CollectionState, n int, each func(f func(row uint32, key string) error) error) (int, error) {
	tooMany := fault.Invalid("%d items, with what they have taught (docs/VERSIONING.md), are too many to delete in one commit: narrow the expression", n)
	if n*((&record.Item{}).Bytes()+s.CodeBytes()) > record.MaxBatchBytes { // at least, before anything is read
		return 0, tooMany
	}
	changes := make([]*Change, 0, n)
	err := each(func(row uint32, key string) error {
		tx.rows[itemKey{s.ID, key}] = rowState{row, true}
		changes = append(changes, &Change{Collection: s.ID, Kind: DeleteItem, Item: &record.Item{Key: key}})
		return ctx.Err()
	})
	if err != nil {
		return 0, err
	}
	var parts []*Request // so that the context is checked now and then
	for part := range slices.Chunk(changes, 1024) {
		parts = append(parts, &Request{Changes: part})
	}
	features := n * 16 * len(s.Modalities) // bytes of deletion records
	err = tx.write(func(bytes int) error {
		if features+bytes > record.MaxBatchBytes {
			return tooMany
		}
		return ctx.Err()
	}, parts...)
	if err != nil {
		return 0, err
	}
	return n, nil
}
