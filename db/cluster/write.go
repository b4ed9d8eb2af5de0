package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// An OpID is the number of a write, see ErrUnknown.
type OpID = wire.ID

// An UnknownError is the ErrUnknown of a write: its Err says what went wrong.
type UnknownError struct {
	ID    OpID
	Shard int
	Err   error
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%v: operation %s on shard %d: %v", ErrUnknown, e.ID, e.Shard, e.Err)
}

// Unwrap returns ErrUnknown and the error that has led to it.
func (e *UnknownError) Unwrap() []error { return []error{ErrUnknown, e.Err} }

// do appends an operation to the log of a shard and waits for what it comes to: nil, or what it is refused
// with. An *UnknownError says that it may have happened, or may happen yet; with any other error it has
// not, and will not.
//
// The same message may get into the log several times, as a server that is lost may have stored it and
// not said so. It is applied once.
func (c *Client) do(ctx context.Context, shard int, op *wire.Op) error {
	return c.doBefore(ctx, shard, op, time.Time{})
}

// doBefore is do, with an error if the operation cannot be appended before a time: it names an object that may be
// removed some time after that.
func (c *Client) doBefore(ctx context.Context, shard int, op *wire.Op, late time.Time) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	select {
	case c.pending <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d writes are under way: %w", cap(c.pending), context.Cause(ctx))
	}
	defer func() { <-c.pending }()
	if err := c.base(ctx, shard); err != nil {
		return err
	}
	for {
		op.ID, op.Base = wire.NewID(), c.sees(shard)
		err := c.once(ctx, shard, op, late)
		if errors.Is(err, errAgain) {
			continue
		}
		return err
	}
}

// errAgain says that an operation has certainly not been applied, and may be made anew.
var errAgain = errors.New("the operation is made anew")

// base learns how long a log is, of which the client does not know yet: operations are refused that come
// much later than what they are based on.
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

// once is doBefore, for one ID.
func (c *Client) once(ctx context.Context, shard int, op *wire.Op, late time.Time) error {
	data, err := op.Encode()
	if err != nil {
		return err
	}
	if _, err := wire.DecodeOp(data); err != nil { // a text that is no UTF-8, say, which no replica would read
		return fmt.Errorf("%w: %w", db.ErrInvalid, err)
	}
	if len(data) > journal.MaxMessage {
		late = time.Now().Add(lateAfter)
		if data, err = c.large(ctx, op); err != nil {
			return err
		}
	}
	heard := c.heard.wait(op.ID)
	defer c.heard.forget(op.ID)
	seq, tries, err := c.logs[shard].Append(ctx, op.ID.String(), data, c.heard.subject, late)
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
	case errors.Is(o.Err(), wire.ErrExpired) && tries == 1 && op.Base+wire.Memory <= seq: // the only one, and too late
		c.saw(shard, seq)
		return errAgain
	case errors.Is(o.Err(), wire.ErrExpired): // it, or an earlier one of the same ID, may have been applied and forgotten
		return &UnknownError{op.ID, shard, o.Err()}
	}
	c.saw(shard, max(seq, o.Seq))
	return o.Err()
}

// large stores the changes of an operation as an object, and returns the operation that names it.
func (c *Client) large(ctx context.Context, op *wire.Op) ([]byte, error) {
	b, err := wire.EncodeChanges(op.Changes)
	if err != nil {
		return nil, err
	}
	small := *op
	small.Object, small.Changes = changesObject+op.ID.String(), nil
	sum := sha256.Sum256(b)
	small.Size, small.Sum = int64(len(b)), sum[:]
	if err := (objects{c.js, c.cluster}).put(ctx, small.Object, b); err != nil {
		return nil, err
	}
	return small.Encode()
}

// silence is for how long an outcome is waited for before a replica is asked.
const silence = 100 * time.Millisecond

// outcome returns what an operation has come to, which is in the log with that sequence.
func (c *Client) outcome(ctx context.Context, shard int, id wire.ID, seq uint64, heard <-chan *wire.Outcome) (*wire.Outcome, error) {
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
		if answer.Outcome == nil { // refused without being remembered, or long ago
			return &wire.Outcome{ID: id, Seq: seq, Fault: wire.FaultOf(wire.ErrExpired)}, nil
		}
		return answer.Outcome, nil
	}
}

// Outcome tells what a write of an UnknownError has come to: applied, or refused with an error, or neither:
// then no replica remembers it. It is not in the log, as far as that has been applied, and may still come as
// long as its message is under way; or it came so long ago, wire.Memory messages of its shard, that it has
// been forgotten.
func (c *Client) Outcome(ctx context.Context, unknown *UnknownError) (applied bool, refused error, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.base(ctx, unknown.Shard); err != nil {
		return false, nil, err
	}
	info, err := c.logs[unknown.Shard].Info(ctx)
	if err != nil {
		return false, nil, err
	}
	a, err := c.ask(ctx, unknown.Shard, wire.Request{Verb: wire.OutcomeOf, ID: unknown.ID, From: info.Last})
	if err != nil || a.Outcome == nil {
		return false, nil, err
	}
	return a.Outcome.Fault == nil, a.Outcome.Err(), nil
}
