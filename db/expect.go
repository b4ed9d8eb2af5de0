package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// PutIf stores an item, as Put does, if what is stored under its key is still old, and
// else nothing: the error is ErrConflict then. old is the item as Get returned it, or
// nil if there must be none. It is compared with what is stored, without codes in a
// collection that learns them; so what has been changed and changed back is as it was.
func (c *Collection) PutIf(ctx context.Context, item, old *Item) error {
	c = c.orNone()
	b := c.db.NewBatch()
	b.PutIf(c, item, old)
	return b.Commit(ctx)
}

// PutIf adds an item to store, and the condition of Collection.PutIf, for the whole
// batch; see Expect.
func (b *Batch) PutIf(c *Collection, item, old *Item) error {
	b = b.orNone()
	if b.err == nil && item == nil {
		b.err = fault.Invalid("no item")
	}
	if b.err == nil {
		b.Expect(c, item.Key, old)
	}
	return b.Put(c, item)
}

// Expect adds a condition: Commit stores the changes of the batch, all of them, if what is
// stored under the key before them is still old, as Get returned it, or nothing if old is
// nil; else it stores none and returns ErrConflict. So several items can be read, and
// written depending on each other, without a lock: whoever finds that another was faster reads
// again. It costs reading the item, in the committer.
func (b *Batch) Expect(c *Collection, key string, old *Item) error {
	b = b.orNone()
	if b.err == nil {
		b.err = b.expect(c, key, old)
	}
	return b.err
}

func (b *Batch) expect(c *Collection, key string, old *Item) error {
	if err := b.usable(c); err != nil {
		return err
	}
	if err := record.CheckWholeKey(key); err != nil {
		return err
	}
	b.spill() // a bulk load reads nothing that it does not replace
	ch := &state.Change{Collection: c.id, Kind: state.ExpectItem, Item: &record.Item{Key: key}}
	if old != nil {
		if old.Key != key {
			return fault.Invalid("the item that is expected under key %q has key %q", key, old.Key)
		}
		err := c.read(func(_ *state.View, cv *state.CollectionView) (err error) {
			if err := cv.Changeable(); err != nil {
				return err
			}
			ch.Old, err = checkItem(cv.Descriptor, old, false)
			return err
		})
		if err != nil {
			return err
		}
		b.bytes += ch.Old.Bytes()
	}
	b.changes = append(b.changes, ch)
	return nil
}
