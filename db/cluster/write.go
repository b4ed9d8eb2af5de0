package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// do appends an operation to the log of a shard and waits for its outcome: nil, or the error of a refusal.
// After an *UnknownError the operation may have been applied, or may yet be; after any other error it has not
// been and will not be.
//
// A message may get into the log several times, because a server that is lost may have stored it without
// acknowledging it. It is applied once.
func (c *Client) do(ctx context.Context, shard int, op *wire.Op) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	select {
	case c.pending <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d writes are under way: %w", cap(c.pending), context.Cause(ctx))
	}
	defer func() { <-c.pending }()
	for {
		err := c.base(ctx, shard)
		if err == nil {
			op.ID, op.Base = wire.NewID(), c.sees(shard)
			err = c.once(ctx, shard, op)
		}
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// errAgain says that an operation was certainly not applied, and may be made again.
var errAgain = errors.New("the operation is made anew")

// base reads the length of a log that the client does not know yet. An operation that comes much later than
// its base is refused.
func (c *Client) base(ctx context.Context, shard int) error {
	if c.sees(shard) > 0 {
		return nil
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		info, err := c.logs[shard].Info(try)
		cancel()
		if err == nil {
			c.saw(shard, info.Last)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// once appends an operation that has an ID, and waits for its outcome.
func (c *Client) once(ctx context.Context, shard int, op *wire.Op) error {
	messages, err := op.Messages()
	if err != nil {
		return fmt.Errorf("%w: %w", db.ErrInvalid, err)
	}
	last := len(messages) - 1
	if last > 0 {
		if err := c.chunks(ctx, shard, op, messages[:last]); err != nil {
			return err
		}
	}
	heard := c.heard.wait(op.ID)
	defer c.heard.forget(op.ID)
	id := op.ID.String()
	if last > 0 {
		id = fmt.Sprint(id, "-", last)
	}
	seq, tries, err := c.logs[shard].Append(ctx, id, kindOf(op), messages[last], c.heard.subject)
	if err != nil && tries > 0 {
		return &UnknownError{op.ID, shard, err}
	}
	if err != nil {
		return err
	}
	o, err := c.outcome(ctx, shard, op.ID, seq, heard)
	switch {
	case err != nil:
		return &UnknownError{op.ID, shard, fmt.Errorf("it is message %d of the log: %w", seq, err)}
	// the only try, and too late
	case errors.Is(o.Err(), wire.ErrExpired) && tries == 1 && op.Base+wire.Memory <= seq:
		c.saw(shard, seq)
		return errAgain
	// this message, or an earlier one of the same ID, may have been applied and forgotten
	case errors.Is(o.Err(), wire.ErrExpired):
		return &UnknownError{op.ID, shard, o.Err()}
	}
	c.saw(shard, max(seq, o.Seq))
	return o.Err()
}

func kindOf(op *wire.Op) journal.Kind {
	switch op.Kind {
	case wire.Write:
		return journal.Writes
	case wire.Skip:
		return journal.Skips
	}
	return journal.Control
}

// chunks appends all chunks of an operation but the last, which completes it. After an error it is not
// applied.
func (c *Client) chunks(ctx context.Context, shard int, op *wire.Op, chunks [][]byte) error {
	select {
	case c.large <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d large writes are under way: %w", cap(c.large), context.Cause(ctx))
	}
	defer func() { <-c.large }()
	for n, b := range chunks {
		_, _, err := c.logs[shard].Append(ctx, fmt.Sprint(op.ID, "-", n), kindOf(op), b, "")
		if err != nil {
			return fmt.Errorf("chunk %d of %d of a write: %w", n, len(chunks)+1, err)
		}
	}
	return nil
}

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
	b.err = b.c.client.together(b.changes[0].Item.Key, it.Key)
}

// together refuses a key that does not belong to the shard of the batch's first key.
func (c *Client) together(first, key string) error {
	if of, is := c.of(key), c.of(first); of != is {
		return fmt.Errorf("%w: item %.80q is of shard %d, and the batch of shard %d: only items of one shard are written together", db.ErrInvalid, key, of, is)
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
	return b.c.client.do(ctx, b.c.client.of(b.changes[0].Item.Key),
		&wire.Op{Kind: wire.Write, Changes: b.changes})
}
