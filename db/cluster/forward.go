package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// forms returns what messages of a shard become in the logs of its parts, one for one, up to the message that
// closes its log.
func (s *split) forms(ctx context.Context, some []journal.Read) (forms [2][][]byte, closed bool, err error) {
	ops := make([]*wire.Op, 0, len(some))
	asks := make([]*wire.Request, 0, len(some))
	for _, m := range some {
		op, err := wire.DecodeOp(m.Data)
		if errors.Is(err, wire.ErrNewer) {
			return forms, false, fmt.Errorf("message %d: %w", m.Seq, err)
		}
		if err != nil { // which its replicas have left out, too
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
			case a.Applied >= seq+wire.Memory: // it may have been forgotten
				return forms, false, errAnew
			default: // refused, as it came too late
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
	ofSeveral = -2 // a part cannot decide the operation itself: it needs the outcome on the shard
)

// owner returns the index of the part that has the keys of all changes of an operation on a shard, or ofNone or
// ofSeveral. Such a part decides the operation as the shard did, as the operation meets the same items there.
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
	if of%from.Shards != index { // it is of another shard, and was refused
		return ofSeveral
	}
	return of
}
