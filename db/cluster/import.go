package cluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

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
func (c *Collection) Import(ctx context.Context, items iter.Seq2[*db.Item, error],
	o ImportOptions) (stored int, err error) {
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
	shards := make([]chan []*db.Item, c.client.Shards())
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
		s := c.client.of(item.Key)
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

// importSome stores items of one shard. If the shard refuses them, bisection finds the bad ones.
func (c *Collection) importSome(ctx context.Context, items []*db.Item, refused func(*db.Item, error) error,
	add func(int)) error {
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

// outcomes receives the outcomes of operations from replicas.
type outcomes struct {
	subject string
	sub     *nats.Subscription

	mu      sync.Mutex
	waiting map[wire.ID]chan *wire.Outcome // each with room for one
}

func listen(nc *nats.Conn) (*outcomes, error) {
	o := &outcomes{subject: nc.NewInbox(), waiting: map[wire.ID]chan *wire.Outcome{}}
	var err error
	o.sub, err = nc.Subscribe(o.subject, func(m *nats.Msg) {
		got, err := wire.DecodeOutcome(m.Data)
		if err != nil {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if c := o.waiting[got.ID]; c != nil {
			select {
			case c <- got:
			default: // another replica was first
			}
		}
	})
	return o, err
}

// wait returns a channel for the outcome of an operation; forget ends the wait.
func (o *outcomes) wait(id wire.ID) <-chan *wire.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := make(chan *wire.Outcome, 1)
	o.waiting[id] = c
	return c
}

func (o *outcomes) forget(id wire.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
}

func (o *outcomes) close() error { return o.sub.Unsubscribe() }

// An OpID identifies a write, see ErrUnknown.
type OpID = wire.ID

// An UnknownError is the ErrUnknown of a write; Err has the cause.
type UnknownError struct {
	ID    OpID
	Shard int
	Err   error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: operation %s on shard %d: %v", ErrUnknown, e.ID, e.Shard, e.Err)
}

// Unwrap returns ErrUnknown and its cause.
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// Outcome tells the outcome of a write that was an UnknownError. The write was applied, or refused with an
// error, or, with neither, no replica remembers it. An unremembered write is not in the applied log: it may
// still arrive while its message is in flight, or it is older than wire.Memory messages of its shard and has
// been forgotten.
func (c *Client) Outcome(ctx context.Context,
	unknown *UnknownError) (applied bool, refused error, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	shard := unknown.Shard
	if shard < 0 || shard >= c.Shards() {
		return false, nil, fmt.Errorf("%w: operation %s of shard %d: there is no such shard", db.ErrInvalid,
			unknown.ID, shard)
	}
	info, err := c.logs[shard].Info(ctx)
	if err != nil {
		return false, nil, err
	}
	// The replica first applies the whole log.
	a, err := c.ask(ctx, shard, wire.Request{Verb: wire.OutcomeOf, ID: unknown.ID, From: info.Last})
	if err != nil || a.Outcome == nil {
		return false, nil, err
	}
	return a.Outcome.Fault == nil, a.Outcome.Err(), nil
}

// silence is how long outcome waits before it asks a replica.
const silence = 100 * time.Millisecond

// outcome returns the outcome of the operation with that sequence in the log.
func (c *Client) outcome(ctx context.Context, shard int, id wire.ID, seq uint64,
	heard <-chan *wire.Outcome) (*wire.Outcome, error) {
	select {
	case o := <-heard:
		return o, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(silence):
	}
	asked := make(chan error, 1)
	var answer *wire.Answer
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		var err error
		answer, err = c.ask(ctx, shard, wire.Request{Verb: wire.OutcomeOf, ID: id, From: seq})
		asked <- err
	}()
	select {
	case o := <-heard:
		return o, nil
	case err := <-asked:
		if err != nil {
			return nil, err
		}
		if answer.Outcome == nil { // refused and not remembered, or long ago
			return &wire.Outcome{ID: id, Seq: seq, Fault: wire.FaultOf(wire.ErrExpired)}, nil
		}
		return answer.Outcome, nil
	}
}
