package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// ImportOptions are the options of Import.
type ImportOptions struct {
	// Refused, unless nil, is called with each item that a shard refuses, and the reason, for example a code
	// of the wrong length. If it returns nil the import goes on, otherwise it ends with that error. Several
	// goroutines may call it at a time.
	Refused func(item *db.Item, why error) error

	// Progress, unless nil, hears the stage "store", in items, from one goroutine at a time. The total is
	// unknown, so it is 0.
	Progress event.Progress
}

// Bounds of one operation of an import.
const (
	importItems = 200
	importBytes = 256 << 10
)

// Import stores many items, in operations of some hundred items of one shard. An operation is atomic; the
// import as a whole is not. Items with the same key are stored in their order. Import returns the number of
// stored items; after an error these need not be the first ones. You may repeat the import: items with keys
// overwrite themselves, and items without keys get new random keys, so they are stored twice.
func (c *Collection) Import(ctx context.Context, items iter.Seq2[*db.Item, error], o ImportOptions) (stored int, err error) {
	ctx, ended := work.Hearing(ctx, &o.Progress)
	defer ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	add := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		if stored += n; o.Progress != nil {
			o.Progress("store", int64(stored), 0)
		}
	}
	v := c.client.view.Load() // after a growth importSome divides the items again
	shards := make([]chan []*db.Item, v.Shards)
	var all sync.WaitGroup
	for i := range shards {
		shards[i] = make(chan []*db.Item, 1)
		all.Go(func() {
			for some := range shards[i] {
				if ctx.Err() != nil {
					continue // drain the channel until it is closed
				}
				if err := c.importSome(ctx, some, o.Refused, add); err != nil {
					cancel(err)
				}
			}
		})
	}
	waiting, bytes := make([][]*db.Item, len(shards)), make([]int, len(shards))
	send := func(shard int) {
		if len(waiting[shard]) == 0 {
			return
		}
		select {
		case shards[shard] <- waiting[shard]:
		case <-ctx.Done():
		}
		waiting[shard], bytes[shard] = nil, 0
	}
	for item, err := range items {
		if err == nil && item == nil {
			err = fmt.Errorf("%w: no item", db.ErrInvalid)
		}
		if err != nil {
			cancel(err)
		}
		if ctx.Err() != nil {
			break
		}
		if item.Key == "" {
			own := *item
			own.Key = wire.NewID().String()
			item = &own
		}
		s := v.of(item.Key)
		waiting[s] = append(waiting[s], item)
		if bytes[s] += sizeOf(item); len(waiting[s]) == importItems || bytes[s] >= importBytes {
			send(s)
		}
	}
	for s := range shards {
		send(s)
		close(shards[s])
	}
	all.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return stored, err
}

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

// importSome stores items of one shard, or of its parts. If the shard refuses them, bisection finds the bad
// ones.
func (c *Collection) importSome(ctx context.Context, items []*db.Item, refused func(*db.Item, error) error, add func(int)) error {
	v, parts := c.client.view.Load(), map[int][]*db.Item{}
	for _, it := range items {
		parts[v.of(it.Key)] = append(parts[v.of(it.Key)], it)
	}
	if len(parts) > 1 { // the cluster has grown
		for _, some := range parts {
			if err := c.importSome(ctx, some, refused, add); err != nil {
				return err
			}
		}
		return nil
	}
	b := c.NewBatch()
	for _, it := range items {
		b.Put(it)
	}
	err := b.Commit(ctx)
	switch {
	case err == nil:
		add(len(items))
		return nil
	case errors.Is(err, ErrUnknown) || !wire.Decided(err):
		return err
	case len(items) > 1:
		half := len(items) / 2
		if err := c.importSome(ctx, items[:half], refused, add); err != nil {
			return err
		}
		return c.importSome(ctx, items[half:], refused, add)
	case refused == nil:
		return fmt.Errorf("item %q: %w", items[0].Key, err)
	}
	return refused(items[0], err)
}
