package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// forms converts messages of a shard to messages for the logs of its parts, one for one. It stops at the
// message that closes the shard's log.
func (s *split) forms(ctx context.Context, some []journal.Read) (forms [2][][]byte, closed bool, err error) {
	ops := make([]*wire.Op, 0, len(some))
	asks := make([]*wire.Request, 0, len(some))
	for _, m := range some {
		op, err := wire.DecodeOp(m.Data)
		if errors.Is(err, wire.ErrVersion) {
			return forms, false, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		if err != nil { // the shard's replicas have skipped it, too
			op = &wire.Op{Kind: wire.Skip}
		}
		var ask *wire.Request
		if owner(op, s.growth.from, s.index, s.growth.to) == ofSeveral {
			ask = &wire.Request{Verb: wire.OutcomeOf, Shard: s.number, ID: op.ID, From: m.Seq, Wait: waitFor}
		}
		ops, asks = append(ops, op), append(asks, ask)
		if closed = op.Kind == wire.Close; closed {
			break
		}
	}
	answers, errs := s.growth.client.router.AskAll(ctx, asks)
	if err := errors.Join(errs...); err != nil {
		return forms, false, err
	}
	for i, op := range ops {
		seq := some[i].Seq
		of := owner(op, s.growth.from, s.index, s.growth.to)
		forwarded := *op
		forwarded.Forward = &wire.Forward{Seq: seq}
		if a := answers[i]; a != nil {
			switch {
			case a.Outcome != nil:
				forwarded.Forward.Decided, forwarded.Forward.Fault = true, a.Outcome.Fault
			case a.Applied >= seq+wire.Memory: // the outcome may have been forgotten
				return forms, false, errAnew
			default: // refused because it came too late
				of = ofNone
			}
		}
		for k := range s.parts {
			form := &forwarded
			if of != ofSeveral && of != s.parts[k].index {
				form = &wire.Op{ID: op.ID, Kind: wire.Skip, Base: op.Base}
			}
			b, err := form.Encode()
			if err != nil {
				return forms, false, fmt.Errorf("message %d: %w", seq, err)
			}
			forms[k] = append(forms[k], b)
		}
	}
	return forms, closed, nil
}

// Results of owner for an operation that does not belong to one part.
const (
	ofNone    = -1
	ofSeveral = -2 // no part can decide the operation: it needs the outcome on the shard
)

// owner returns the index of the part that has all keys of an operation on a shard, or ofNone or ofSeveral.
// That part decides the operation as the shard did, because it has the same items.
func owner(op *wire.Op, from plan.Layout, index int, to plan.Layout) int {
	switch {
	case op.Kind.Own():
		return ofNone
	case op.Kind != wire.Write || op.Object != "" || op.Forward != nil || len(op.Changes) == 0:
		return ofSeveral
	}
	of := shard.Of(op.Changes[0].Item.Key, to.Shards)
	for _, ch := range op.Changes {
		if ch.Kind == wire.Register || shard.Of(ch.Item.Key, to.Shards) != of {
			return ofSeveral
		}
	}
	if of%from.Shards != index { // an operation for another shard, which was refused
		return ofSeveral
	}
	return of
}

// forward copies the log of the shard to the parts, up to the message that closes it.
func (s *split) forward(ctx context.Context, is plan.Placement) error {
	if is.Closed { // the backup was made after the log was closed, so it is complete
		s.closed.Store(is.Origin)
		return nil
	}
	from := uint64(0)
	for i, part := range s.parts {
		info, err := infoOf(ctx, part.log)
		if err != nil {
			return err
		}
		if at := max(info.Last, is.Origin+1) - 1; i == 0 || at < from {
			from = at
		}
	}
	s.forwarded.Store(from)
	// If the last message stands for the closing message, all messages behind it were refused.
	if from > is.Origin {
		var m apply.Message
		err := again(ctx, func(ctx context.Context) (err error) {
			m, err = s.parts[0].log.At(ctx, from+1)
			if errors.Is(err, journal.ErrNone) { // the server that answered may be behind
				err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
			}
			return err
		})
		if err != nil {
			return err
		}
		if op, err := wire.DecodeOp(m.Data); err == nil && op.Kind == wire.Skip && op.ID == s.id("close") {
			s.closed.Store(from)
			return nil
		}
	}
	info, err := infoOf(ctx, s.log)
	if err != nil {
		return err
	}
	if info.First > from+1 {
		return errAnew
	}
	err = s.log.Follow(ctx, from+1, func(some []journal.Read) error {
		if some[0].Seq != s.forwarded.Load()+1 { // the log has been trimmed
			return errAnew
		}
		forms, closed, err := s.forms(ctx, some)
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		errs := make([]error, len(s.parts))
		for i, part := range s.parts {
			all.Go(func() { errs[i] = part.log.Extend(ctx, some[0].Seq, forms[i]) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		s.forwarded.Add(uint64(len(forms[0])))
		if closed {
			s.closed.Store(s.forwarded.Load())
			return errEnd
		}
		return nil
	})
	if errors.Is(err, errEnd) {
		return nil
	}
	return err
}

// infoOf returns the first and last sequence of a log.
func infoOf(ctx context.Context, log *journal.Journal) (info journal.Info, err error) {
	err = again(ctx, func(ctx context.Context) (err error) {
		info, err = log.Info(ctx)
		return err
	})
	return info, err
}

// errEnd ends following a log.
var errEnd = errors.New("the log is closed")
