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

// A target returns the index of the shard of a view that an operation is for.
type target func(v *view) (index int, err error)

// do appends an operation to the log of a shard and waits for its outcome: nil, or the error of a refusal.
// After an *UnknownError the operation may have been applied, or may yet be; after any other error it has not
// been and will not be.
//
// A message may get into the log several times, because a server that is lost may have stored it without
// acknowledging it. It is applied once.
func (c *Client) do(ctx context.Context, at target, op *wire.Op) error {
	return c.doBefore(ctx, time.Time{}, at, op)
}

// doBefore is do, with an error if the operation cannot be appended before a time: the object that it names
// may be removed some time later.
func (c *Client) doBefore(ctx context.Context, late time.Time, at target, op *wire.Op) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	select {
	case c.pending <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d writes are under way: %w", cap(c.pending), context.Cause(ctx))
	}
	defer func() { <-c.pending }()
	for {
		v := c.view.Load()
		index, err := at(v)
		if err == nil {
			in, cancel := v.within(ctx)
			err = v.do(ctx, in, index, op, late)
			cancel()
		}
		switch {
		case errors.Is(err, errAgain):
			continue
		case errors.Is(err, wire.ErrSplit):
			if nerr := c.next(ctx, v); nerr != nil {
				return fmt.Errorf("%w: nothing was written: %w", nerr, err)
			}
			continue
		}
		return err
	}
}

// errAgain says that an operation was certainly not applied, and may be made again.
var errAgain = errors.New("the operation is made anew")

// do is Client.doBefore for one ID and in one view. in ends with the view.
func (v *view) do(ctx, in context.Context, index int, op *wire.Op, late time.Time) error {
	err := v.base(in, index)
	if err == nil {
		op.ID, op.Base = wire.NewID(), v.sees(index)
		err = v.once(in, index, op, late)
	}
	if err == nil || !v.isOver() {
		return err
	}
	var unknown *UnknownError
	switch {
	case errors.As(err, &unknown):
		return v.client.settle(ctx, unknown, op.Base)
	case wire.Decided(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return errAgain // it is not in the log
}

// base reads the length of a log that the client does not know yet. An operation that comes much later than
// its base is refused.
func (v *view) base(ctx context.Context, index int) error {
	if v.sees(index) > 0 {
		return nil
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		info, err := v.logs[index].Info(try)
		cancel()
		if err == nil {
			v.saw(index, info.Last)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// once appends an operation that has an ID, or gives up, see doBefore.
func (v *view) once(ctx context.Context, index int, op *wire.Op, late time.Time) error {
	c, shard := v.client, v.Number(index)
	data, err := op.Encode()
	if err != nil {
		return err
	}
	if _, err := wire.DecodeOp(data); err != nil { // for example invalid UTF-8, which no replica would read
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
	seq, tries, err := v.logs[index].Append(ctx, op.ID.String(), data, c.heard.subject, late)
	if err != nil && tries > 0 {
		return &UnknownError{op.ID, shard, err}
	}
	if err != nil {
		return err
	}
	o, err := v.outcome(ctx, index, op.ID, seq, heard)
	switch {
	case err != nil:
		return &UnknownError{op.ID, shard, fmt.Errorf("it is message %d of the log: %w", seq, err)}
	case errors.Is(o.Err(), wire.ErrExpired) && tries == 1 && op.Base+wire.Memory <= seq: // the only try, and too late
		v.saw(index, seq)
		return errAgain
	case errors.Is(o.Err(), wire.ErrExpired): // this message, or an earlier one of the same ID, may have been applied and forgotten
		return &UnknownError{op.ID, shard, o.Err()}
	}
	v.saw(index, max(seq, o.Seq))
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
