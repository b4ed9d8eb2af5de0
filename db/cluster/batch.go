package cluster

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Batch collects changes that are made together: all or none. All its items belong to the shard of the
// first key; Commit refuses an item of another shard. Package shard tells which keys share a shard. A Batch
// is for one goroutine.
type Batch struct {
	c       *Collection
	changes []wire.Change
	err     error
	done    bool
}

// NewBatch returns an empty batch.
func (c *Collection) NewBatch() *Batch { return &Batch{c: c} }

// Put adds an item to store. Put does not copy the item: leave it unchanged until Commit returns.
func (b *Batch) Put(item *db.Item) { b.change(wire.Put, item) }

// Merge adds an item to merge.
func (b *Batch) Merge(item *db.Item) { b.change(wire.Merge, item) }

// Delete adds the deletion of an item. A missing item is no error.
func (b *Batch) Delete(key string) { b.change(wire.Delete, &db.Item{Key: key}) }

// PutIf adds an item to store, with the condition of Collection.PutIf, which applies to the whole batch.
func (b *Batch) PutIf(item, old *db.Item) {
	if item != nil {
		b.Expect(item.Key, old)
	}
	b.change(wire.Put, item)
}

// Expect adds a condition: the stored item with the key equals old, or, if old is nil, there is none. All
// conditions are checked before any change of the batch is made.
func (b *Batch) Expect(key string, old *db.Item) {
	b.change(wire.Expect, &db.Item{Key: key})
	if b.err == nil {
		b.changes[len(b.changes)-1].Old = wire.ItemOf(old)
	}
}

// change adds a change. The first error stays, and Commit returns it.
func (b *Batch) change(kind wire.ChangeKind, item *db.Item) {
	switch {
	case b.err != nil:
		return
	case b.done:
		b.err = fmt.Errorf("%w: the batch has been committed", db.ErrInvalid)
		return
	case item == nil:
		b.err = fmt.Errorf("%w: no item", db.ErrInvalid)
		return
	}
	it := wire.ItemOf(item)
	if it.Key == "" && kind == wire.Put && len(b.changes) == 0 {
		it.Key = wire.NewID().String()
	}
	if it.Key == "" {
		b.err = fmt.Errorf("%w: an item without a key", db.ErrInvalid)
		return
	}
	b.changes = append(b.changes, wire.Change{Collection: b.c.name, Kind: kind, Item: it})
	v := b.c.client.view.Load()
	b.err = v.together(b.changes[0].Item.Key, it.Key)
}

// shard is the target of the batch. After the cluster grows, the items of a batch may belong to several
// shards.
func (b *Batch) shard(v *view) (index int, err error) {
	first := b.changes[0].Item.Key
	for _, ch := range b.changes {
		if err := v.together(first, ch.Item.Key); err != nil {
			return 0, err
		}
	}
	return v.of(first), nil
}

// together refuses a key that does not belong to the shard of the batch's first key.
func (v *view) together(first, key string) error {
	if of, index := v.of(key), v.of(first); of != index {
		return fmt.Errorf("%w: item %.80q is of shard %d, and the batch of shard %d: only items of one shard are written together", db.ErrInvalid, key, v.Number(of), v.Number(index))
	}
	return nil
}

// Commit makes the changes, see Collection.Put. The batch cannot be used again.
func (b *Batch) Commit(ctx context.Context) error {
	if b.err == nil && b.done {
		b.err = fmt.Errorf("%w: the batch has been committed", db.ErrInvalid)
	}
	if b.err != nil {
		return b.err
	}
	b.done = true
	if len(b.changes) == 0 {
		return ctx.Err()
	}
	return b.c.client.do(ctx, b.shard, &wire.Op{Kind: wire.Write, Changes: b.changes})
}
