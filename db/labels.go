package db

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Labels returns the labels of the items of the collection, in the order in which they first appeared. A
// label without items is not among them; it comes back, at its place, when an item brings it again. Labels
// reads one record a label the first time, and later those of changed labels. Facets counts the items of each.
func (c *Collection) Labels() ([]string, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) ([]string, error) {
		ids, err := cv.LabelsInUse(v.Snap)
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, ids.GetCardinality())
		for it := ids.Iterator(); it.HasNext(); {
			id := it.Next()
			if int64(id) >= int64(len(cv.Names)) {
				return nil, fault.Corrupt(fmt.Errorf("id %d of %d", id, len(cv.Names)), "label of collection %q", cv.Name)
			}
			names = append(names, cv.Names[id])
		}
		return names, nil
	})
}

// RenameLabel gives a label another name, durably and in one commit, whose time does not depend on the number
// of items. Items, codes and models stay as they are: models keep what they know of the label. Snapshots, and
// reads that have begun, see the old name. If an item brings the old name again, it is another label, unknown
// to all models.
//
// Errors: ErrNotFound if no item has the label old; ErrExists if items have the label name (MergeLabel makes
// one label of two); ErrInvalid for an impossible or equal name; ErrReadOnly for an index-only collection.
func (c *Collection) RenameLabel(ctx context.Context, old, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return err
	}
	if err := checkLabels(old, name, "that is its name already"); err != nil {
		return err
	}
	err := c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error { return tx.RenameLabel(s, old, name) })
	if err == nil {
		c.db.changed(ctx, event.LabelRenamed, event.Event{Collection: c.name})
	}
	return err
}

// MergeLabel replaces the label from by the label into in all items, durably and in one commit, and returns
// the number of these items. It cannot be undone: nothing tells which items had which label. The label from
// leaves Labels, and is a label of its own if an item brings it again.
//
// MergeLabel writes the records of these items again, as tables. It takes the memory of one item and disk for
// the records twice, payloads included; other writers wait meanwhile.
//
// If a model knows one of the labels, the items get the codes of their new labels, block by block, as after an
// Update that grows labels; until MergeLabel returns, searches find some items by their old codes. The next
// Update takes the old lessons of these items out of the statistics, and they teach again. The model keeps the
// direction of from, without items; if it does not know into, the items get codes by their other labels and
// vectors until an Update grows that label. If the context or the process ends in between, the merge stands:
// MergeLabel returns the number of items beside the error, and the next Update or Open makes the missing codes.
//
// Errors: ErrNotFound if no item has from, or into; ErrInvalid if both are one; ErrBusy while a space of the
// collection is being trained or built; ErrReadOnly for an index-only collection.
func (c *Collection) MergeLabel(ctx context.Context, from, into string) (items int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	in, leave, err := c.learning(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := checkLabels(from, into, "it cannot be merged into itself"); err != nil {
		return 0, err
	}
	ctx, op := in.DB.Signals.Begin(ctx, event.OpMergeLabel, in.Name)
	defer op.Abandon()
	items, err = bulk.MergeLabel(ctx, in.Collection, from, into)
	if err == nil {
		err = fault.Annotate(in.RecodeAll(ctx), "the labels are merged, and the next update makes the codes that are left")
	}
	op.End(err, event.Event{Items: int64(items)})
	return items, err
}

// checkLabels checks the names of a label and of what it is to become, which are not to be one.
func checkLabels(from, to, one string) error {
	for _, name := range []string{from, to} {
		if err := record.CheckLabel(name); err != nil {
			return err
		}
	}
	if from == to {
		return fault.Invalid("label %q: %s", record.Shortened(from), one)
	}
	return nil
}
