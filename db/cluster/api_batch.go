package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Bounds of one operation of an import, for each shard.
const (
	importItems = 200
	importBytes = 256 << 10
)

// sizeOf estimates the bytes of an item in a message.
func sizeOf(it *db.Item) int {
	n := 32 + len(it.Key) + len(it.Payload) + len(it.Code)
	for _, v := range it.Vectors {
		n += 16 + 4*len(v)
	}
	for _, v := range it.Sparse {
		n += 16 + 8*len(v.Index)
	}
	for _, l := range it.Labels {
		n += len(l)
	}
	for _, v := range it.Fields {
		n += 16
		if s, ok := v.(string); ok {
			n += len(s)
		}
	}
	return n
}

// batch is an api.Batch: its changes by shard. Commit makes those of a shard together.
type batch struct {
	client   *Client
	shards   map[int][]wire.Change
	n, bytes int
	expects  bool
	keys     []string // of the items that are put and merged
	err      error    // the first one; Commit returns it
	done     bool
	stored   bool
}

var errCommitted = fault.Invalid("the batch has been committed")

func (d *database) NewBatch() api.Batch {
	return &batch{client: d.client, shards: map[int][]wire.Change{}}
}

// add adds a change of an item; old is what Expect expects. Every later call returns the first error.
func (b *batch) add(of api.Collection, kind wire.ChangeKind, item, old *db.Item) error {
	if b.err == nil {
		b.err = b.check(of, kind, item, old)
	}
	if b.err != nil {
		return b.err
	}
	change := wire.Change{Collection: of.Name(), Kind: kind, Item: wire.ItemOf(clone(item))}
	if old != nil {
		change.Old = wire.ItemOf(clone(old))
	}
	shard := b.client.of(item.Key)
	b.shards[shard] = append(b.shards[shard], change)
	b.bytes += sizeOf(item)
	if kind == wire.Expect {
		b.expects = true
	} else {
		b.n++
	}
	if kind == wire.Put || kind == wire.Merge {
		b.keys = append(b.keys, item.Key)
	}
	return nil
}

// check refuses a change that its shard would refuse. The handle's schema is as good as a later one: it does
// not change.
func (b *batch) check(of api.Collection, kind wire.ChangeKind, item, old *db.Item) error {
	c, own := of.(*collection)
	switch {
	case b.done:
		return errCommitted
	case !own || c.client != b.client:
		return fault.Invalid("the collection is of another database")
	case item == nil:
		return fault.Invalid("no item")
	case item.Key == "":
		return fault.Invalid("an item without a key: a cluster does not number items")
	case old != nil && old.Key != item.Key:
		return fault.Invalid("the item that is expected under key %q has key %q", item.Key, old.Key)
	case old != nil:
		item = old
	}
	return c.schema.CheckItem(item, kind != wire.Put)
}

func (b *batch) Put(c api.Collection, item *db.Item) error { return b.add(c, wire.Put, item, nil) }

func (b *batch) Merge(c api.Collection, item *db.Item) error { return b.add(c, wire.Merge, item, nil) }

func (b *batch) Delete(c api.Collection, key string) error {
	return b.add(c, wire.Delete, &db.Item{Key: key}, nil)
}

func (b *batch) Expect(c api.Collection, key string, old *db.Item) error {
	return b.add(c, wire.Expect, &db.Item{Key: key}, old)
}

// RegisterLabels does nothing: in a cluster labels have the order in which items bring them.
func (b *batch) RegisterLabels(api.Collection, []string) error { return b.err }

func (b *batch) Mark(string, []byte) error {
	if b.err == nil {
		b.err = errMark
	}
	return b.err
}

func (b *batch) Len() int { return b.n }

// Full reports whether each shard has enough to do: more in an operation makes it no faster.
func (b *batch) Full() bool {
	return b.n >= importItems*b.client.Shards() || b.bytes >= importBytes*b.client.Shards()
}

// Commit makes the changes of each shard, all shards at a time. After an error some shards may have made
// theirs. A batch with conditions has changes of one shard only, as otherwise one shard would not know of the
// conditions of another.
func (b *batch) Commit(ctx context.Context) error {
	switch {
	case b.err != nil:
		return b.err
	case b.done:
		return errCommitted
	case b.expects && len(b.shards) > 1:
		return cannot("check conditions of several shards together",
			"make a batch for each shard, see package shard")
	}
	b.done = true
	if err := ctx.Err(); err != nil {
		return err
	}
	shards := slices.Sorted(maps.Keys(b.shards))
	errs := make([]error, len(shards))
	var all sync.WaitGroup
	for i, shard := range shards {
		all.Go(func() {
			errs[i] = b.client.do(ctx, shard, &wire.Op{Kind: wire.Write, Changes: b.shards[shard]})
		})
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	b.stored = len(failed) == 0
	switch {
	case b.stored:
		return nil
	case len(shards) == 1:
		return failed[0]
	}
	return fmt.Errorf("of %d shards %d have made their changes: %w", len(shards), len(shards)-len(failed),
		errors.Join(failed...))
}

func (b *batch) Keys() []string {
	if !b.stored {
		return nil
	}
	return b.keys
}

// clone copies an item.
func clone(it *db.Item) *db.Item {
	own := *it
	own.Labels, own.Payload = slices.Clone(it.Labels), slices.Clone(it.Payload)
	own.Code, own.Fields = slices.Clone(it.Code), maps.Clone(it.Fields)
	own.Vectors, own.Sparse = maps.Clone(it.Vectors), maps.Clone(it.Sparse)
	for name, v := range own.Vectors {
		own.Vectors[name] = slices.Clone(v)
	}
	for name, v := range own.Sparse {
		own.Sparse[name] = db.Sparse{Index: slices.Clone(v.Index), Value: slices.Clone(v.Value)}
	}
	return &own
}
