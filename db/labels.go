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

// Labels returns the labels that items of the collection have, in the order in which they first
// appeared. One that no item has any more comes back, at its place, when an item brings it again.
// It reads one record a label, or if it was called before those of the labels that have changed since.
// Facets counts the items of each.
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

// RenameLabel gives a label another name, durably and in one commit, whose time does not depend
// on the number of items. Items, codes and models stay as they are: what a model has learned of
// the label holds for its new name. Snapshots, and reads that have begun, go on with the old
// name. The old name, if an item brings it again, is another label, of which no model knows.
//
// ErrNotFound: no item has the label old. ErrExists: items have the label name; MergeLabel makes
// one label of two. ErrInvalid: the new name is not possible, or is the old one. A collection
// that is index-only gives ErrReadOnly.
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

// MergeLabel gives all items that have the label from the label into in its place, durably and
// in one commit, and returns how many they are. No item has from any more: it is not among
// Labels, and comes back as a label of its own if an item brings it. To undo it is not possible,
// as nothing tells any more which items had which label.
//
// The records of these items are written again, as tables: the memory is that of one item, the
// disk needs room for the records, payloads included, twice, and other writers wait meanwhile.
//
// Where a model knows one of the labels, the items then get the codes of their labels as they
// are now, block by block, as after an Update that grows labels: until MergeLabel returns
// searches find some of them by their old codes. What such an item has taught is taken out of
// the statistics by the next Update, in which it teaches anew. The model keeps the direction of
// from, which no item has; if it does not know into, the items are coded by what else they are
// until an Update grows that label. If the context ends between, or the process, the merge
// stands, with the number of items returned beside the error, and the next Update or Open makes
// the codes that are left.
//
// ErrNotFound: no item has the label from, or into. ErrInvalid: the two are one. ErrBusy: a space
// of the collection is being trained or built. A collection that is index-only gives ErrReadOnly.
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
