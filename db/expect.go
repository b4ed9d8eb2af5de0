package db

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
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
	if b.bulk != nil {
		b.spill()
	}
	b.single = true // a bulk load reads nothing that it does not replace
	ch := &change{collection: c.id, kind: expectItem, item: &record.Item{Key: key}}
	if old != nil {
		if old.Key != key {
			return fault.Invalid("the item that is expected under key %q has key %q", key, old.Key)
		}
		err := c.read(func(_ *view, cv *collectionView) (err error) {
			if err := cv.Changeable(); err != nil {
				return err
			}
			ch.old, err = checkItem(cv.Descriptor, old, false)
			return err
		})
		if err != nil {
			return err
		}
		b.bytes += ch.old.Bytes()
	}
	b.changes = append(b.changes, ch)
	return nil
}

// expected checks what a change expects of what is stored, and returns about how many
// bytes it has read.
func (tx *tx) expected(s *collectionState, ch *change) (bytes int, err error) {
	conflict := func(how string) (int, error) {
		return 0, fmt.Errorf("%w: item %q in collection %q %s: read it again", fault.ErrConflict, ch.item.Key, s.Name, how)
	}
	if !s.loaded() {
		return 0, fmt.Errorf("fddhdb: the codes of collection %q are not loaded", s.Name)
	}
	st, err := tx.row(s, ch.item.Key)
	switch {
	case err != nil:
		return 0, err
	case ch.old == nil && st.found:
		return conflict("is there already")
	case ch.old == nil:
		return 0, nil
	case !st.found:
		return conflict("is gone")
	}
	if bytes, err = tx.fetch(s, st.row, true); err != nil {
		return 0, err
	}
	if !tx.items[itemRow{s.ID, st.row}].Equal(ch.old) {
		return conflict("has changed")
	}
	return bytes, nil
}
