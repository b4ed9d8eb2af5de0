package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

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
