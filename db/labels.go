package db

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
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
// Errors: ErrNotFound if no item has the label old; ErrExists if items have the label name;
// ErrInvalid for an impossible or equal name; ErrReadOnly for an index-only collection.
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
	for _, l := range []string{old, name} {
		if err := record.CheckLabel(l); err != nil {
			return err
		}
	}
	if old == name {
		return fault.Invalid("label %q: that is its name already", record.Shortened(old))
	}
	err := c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error { return tx.RenameLabel(s, old, name) })
	if err == nil {
		c.db.changed(ctx, event.LabelRenamed, event.Event{Collection: c.name})
	}
	return err
}
