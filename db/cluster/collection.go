package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// CreateCollection creates a collection on every shard, see db.DB.CreateCollection. An existing collection
// with the same schema is no error; with another schema it is db.ErrExists. If a shard cannot be reached,
// only some shards may have the collection: call it again.
func (c *Client) CreateCollection(ctx context.Context, name string, schema db.Schema) (*Collection, error) {
	err := c.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.CreateCollection, Collection: name, Schema: &schema} }, nil)
	if err != nil {
		return nil, err
	}
	return c.Collection(name), nil
}

// DropCollection drops a collection on every shard that has it. If no shard has it, that is db.ErrNotFound.
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

// A Collection is a handle on a collection of a cluster; it holds no resources. All methods are safe for
// concurrent use.
type Collection struct {
	client *Client
	name   string
}

// Collection returns a handle on a collection, which need not exist.
func (c *Client) Collection(name string) *Collection { return &Collection{c, name} }

// Name returns the name of the collection.
func (c *Collection) Name() string { return c.name }

// Put stores an item, see db.Collection.Put. An item without a key gets a random one; Put returns the key.
// Once Put returns nil the item is durable, and all later reads of this client see it.
func (c *Collection) Put(ctx context.Context, item *db.Item) (key string, err error) {
	return c.write(ctx, wire.Put, item)
}

// Merge merges an item into the stored item with its key, see db.Collection.Merge.
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

// PutIf stores an item if the stored item with its key still equals old, or, if old is nil, there is none.
// Otherwise it changes nothing and returns db.ErrConflict. The condition is decided at the write's position
// in the log.
func (c *Collection) PutIf(ctx context.Context, item, old *db.Item) error {
	b := c.NewBatch()
	b.PutIf(item, old)
	return b.Commit(ctx)
}

// Delete deletes the item with a key. A missing item is no error.
func (c *Collection) Delete(ctx context.Context, key string) error {
	b := c.NewBatch()
	b.Delete(key)
	return b.Commit(ctx)
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
