package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// CreateCollection creates a collection on every shard, see db.DB.CreateCollection. One that is there with
// the same schema is no error; with another one it is db.ErrExists. If a shard cannot be reached some may
// have the collection and others not: call it again.
func (c *Client) CreateCollection(ctx context.Context, name string, schema db.Schema) (*Collection, error) {
	err := c.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.CreateCollection, Collection: name, Schema: &schema} }, nil)
	if err != nil {
		return nil, err
	}
	return c.Collection(name), nil
}

// DropCollection drops a collection on every shard. Where it is gone already nothing happens; where it is
// on no shard it is db.ErrNotFound.
func (c *Client) DropCollection(ctx context.Context, name string) error {
	var dropped atomic.Bool
	err := c.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.DropCollection, Collection: name} }, func(err error) error {
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		dropped.Store(true)
		return err
	})
	if err == nil && !dropped.Load() {
		err = fmt.Errorf("%w: collection %q", db.ErrNotFound, name)
	}
	return err
}

// errParts says that a shard has been split before an operation was applied on it, which is for its parts then.
var errParts = errors.New("the shard has been split")

// onAll does an operation on every shard, at the same time. Where a shard is split before, it is done on its
// parts. The result of each goes through done, unless that is nil.
func (c *Client) onAll(ctx context.Context, op func() *wire.Op, done func(error) error) error {
	return c.onAllBefore(ctx, time.Time{}, op, done)
}

// onAllBefore is onAll, for operations that have to be appended before a time, see doBefore.
func (c *Client) onAllBefore(ctx context.Context, late time.Time, op func() *wire.Op, done func(error) error) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var on func(l plan.Layout, indexes []int) error
	on = func(l plan.Layout, indexes []int) error {
		errs := make([]error, len(indexes))
		var all sync.WaitGroup
		for i, index := range indexes {
			all.Go(func() {
				err := c.doBefore(ctx, late, func(v *view) (int, error) {
					if v.Layout != l {
						return 0, errParts
					}
					return index, nil
				}, op())
				switch {
				case errors.Is(err, errParts):
					now := c.view.Load().Layout
					err = on(now, l.Parts(index, now))
				case done != nil:
					err = done(err)
				}
				errs[i] = err
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
	l := c.view.Load().Layout
	return on(l, l.Indexes())
}

// A Collection is a handle on a collection of a cluster; it costs nothing to keep. All methods are safe for
// concurrent use.
type Collection struct {
	client *Client
	name   string
}

// Collection returns a handle on a collection, whether or not there is one.
func (c *Client) Collection(name string) *Collection { return &Collection{c, name} }

// Name returns the name of the collection.
func (c *Collection) Name() string { return c.name }

// Put stores an item, see db.Collection.Put. One without a key gets a random one, which is returned. When it
// returns nil the item is durable, and everything that this client reads shows it.
func (c *Collection) Put(ctx context.Context, item *db.Item) (key string, err error) {
	return c.write(ctx, wire.Put, item)
}

// Merge merges an item with what is stored under its key, see db.Collection.Merge.
func (c *Collection) Merge(ctx context.Context, item *db.Item) (key string, err error) {
	return c.write(ctx, wire.Merge, item)
}

func (c *Collection) write(ctx context.Context, kind wire.ChangeKind, item *db.Item) (key string, err error) {
	b := c.NewBatch()
	b.change(kind, item)
	if err := b.Commit(ctx); err != nil {
		return "", err
	}
	return b.changes[0].Item.Key, nil
}

// PutIf stores an item if what is stored under its key is still old, or nothing if old is nil; else nothing
// happens, and it is db.ErrConflict. That is decided where the write stands in the log.
func (c *Collection) PutIf(ctx context.Context, item, old *db.Item) error {
	b := c.NewBatch()
	b.PutIf(item, old)
	return b.Commit(ctx)
}

// Delete deletes the item with a key, if there is one.
func (c *Collection) Delete(ctx context.Context, key string) error {
	b := c.NewBatch()
	b.Delete(key)
	return b.Commit(ctx)
}

// A Batch collects changes of items of one shard that are made together: all or none. Which shard that is
// the first key says, and what is of another is refused: put what belongs together under keys of one shard,
// see package shard. It is for one goroutine.
type Batch struct {
	c       *Collection
	changes []wire.Change
	err     error
	done    bool
}

// NewBatch returns an empty batch.
func (c *Collection) NewBatch() *Batch { return &Batch{c: c} }

// Put adds an item to store. It is not copied: leave it as it is until Commit returns.
func (b *Batch) Put(item *db.Item) { b.change(wire.Put, item) }

// Merge adds an item to merge.
func (b *Batch) Merge(item *db.Item) { b.change(wire.Merge, item) }

// Delete adds an item to delete, if there is one with this key.
func (b *Batch) Delete(key string) { b.change(wire.Delete, &db.Item{Key: key}) }

// PutIf adds an item to store, and the condition of Collection.PutIf, for the whole batch.
func (b *Batch) PutIf(item, old *db.Item) {
	if item != nil {
		b.Expect(item.Key, old)
	}
	b.change(wire.Put, item)
}

// Expect adds the condition that what is stored under a key is old, or nothing if old is nil. Conditions
// hold for what is stored before the batch.
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

// shard is the target of the batch. A batch that is of one shard now may be of several when the cluster has grown.
func (b *Batch) shard(v *view) (index int, err error) {
	first := b.changes[0].Item.Key
	for _, ch := range b.changes {
		if err := v.together(first, ch.Item.Key); err != nil {
			return 0, err
		}
	}
	return v.of(first), nil
}

// together refuses a key that is not of the shard of the first one of its batch.
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

// Get returns the item with a key, or db.ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (*db.Item, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	var a *wire.Answer
	err := c.client.steady(ctx, func(ctx context.Context, v *view) (err error) {
		a, err = v.ask(ctx, v.of(key), wire.Request{Verb: wire.Get, Collection: c.name, Key: key})
		return err
	})
	if err != nil {
		return nil, err
	}
	return a.Item.Item(), nil
}
