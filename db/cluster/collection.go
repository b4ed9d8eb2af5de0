package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db"
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
