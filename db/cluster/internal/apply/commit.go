package apply

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// commit applies unconditional writes in one commit. If one of them is refused, each gets its own commit.
func (s *State) commit(ctx context.Context, run []*pending) (all []Applied, err error) {
	if len(run) > 1 {
		b, err := s.batch(run)
		if err == nil {
			err = s.store(ctx, b, run...)
		}
		if err == nil {
			return s.applied(run...), nil
		}
		if !wire.Decided(err) {
			return nil, err
		}
	}
	for _, p := range run {
		p.outcome, p.fresh = nil, false
		done, err := s.alone(ctx, p)
		all = append(all, done...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// batch returns a batch with the changes of a run.
func (s *State) batch(run []*pending) (*db.Batch, error) {
	b, ahead := s.DB.NewBatch(), map[wire.ID]*wire.Outcome{}
	for _, p := range run {
		if p.outcome = ahead[p.op.ID]; p.outcome == nil {
			p.outcome = s.before(p)
		}
		if p.outcome != nil {
			continue
		}
		if err := s.add(b, p.op.Changes); err != nil {
			return nil, err
		}
		p.decided(nil)
		ahead[p.op.ID] = p.outcome
	}
	return b, nil
}

// before returns the outcome of an operation that must not be applied, because it has been applied before or
// comes too late to tell; otherwise nil.
func (s *State) before(p *pending) *wire.Outcome {
	if o := s.Outcome(p.op.ID); o != nil {
		return o
	}
	if seq := p.position.Seq; p.op.Base <= seq && seq < p.op.Base+wire.Memory {
		return nil
	}
	err := fmt.Errorf("%w: it was made when the log was at %d, and is message %d", wire.ErrExpired, p.op.Base,
		p.position.Seq)
	return &wire.Outcome{ID: p.op.ID, Seq: p.position.Seq, Fault: wire.FaultOf(err)}
}

// decided sets the outcome of the operation.
func (p *pending) decided(err error) {
	p.outcome, p.fresh = &wire.Outcome{ID: p.op.ID, Seq: p.position.Seq, Fault: wire.FaultOf(err)}, true
}

// alone applies one message.
func (s *State) alone(ctx context.Context, p *pending) ([]Applied, error) {
	b := s.DB.NewBatch()
	if p.op != nil {
		p.outcome = s.before(p)
	}
	if p.op != nil && p.outcome == nil {
		op, err := p.op, error(nil)
		if op.Kind == wire.Chunk {
			op, err = s.complete(b, p)
		}
		switch {
		case err != nil || op == nil:
		case op.Kind != wire.Write && !p.control:
			err = fmt.Errorf("%w: %v on the subject of writes", db.ErrInvalid, op.Kind)
		default:
			err = s.carryOut(ctx, b, op)
		}
		if err != nil && !wire.Decided(err) {
			return nil, err
		}
		if err != nil || op != nil {
			p.decided(err)
		}
		if err != nil {
			b = s.DB.NewBatch()
		}
	}
	err := s.store(ctx, b, p)
	if err != nil && wire.Decided(err) && p.fresh && p.outcome.Fault == nil {
		p.decided(err)
		err = s.store(ctx, s.DB.NewBatch(), p)
	}
	if err != nil {
		return nil, err
	}
	return s.applied(p), nil
}

// carryOut adds the changes of an operation to the batch. An operation that needs its own commits changes the
// database at once. A mark is stored first: if the process ends in between, the operation is repeated.
func (s *State) carryOut(ctx context.Context, b *db.Batch, op *wire.Op) error {
	switch op.Kind {
	case wire.Write:
		return s.add(b, op.Changes)
	case wire.CreateCollection:
		// An existing collection with that schema is no error, so a repetition is harmless.
		_, err := s.DB.EnsureCollection(ctx, op.Collection, *op.Schema)
		return err
	case wire.DropCollection:
		_, err := s.DB.Collection(op.Collection)
		there := err == nil
		if err != nil && (!errors.Is(err, db.ErrNotFound) || s.again == 0) {
			return err
		}
		if err := errors.Join(s.doing(ctx), s.dropIndexes(ctx, b, op.Collection)); err != nil || !there {
			return err
		}
		return s.DB.DropCollection(ctx, op.Collection)
	case wire.Skip: // SkipAll has read it, unless it came behind a message that this replica has applied
		if !s.skips[op.Of] {
			return fmt.Errorf("%w: message %d has been applied", db.ErrConflict, op.Of)
		}
		return nil
	case wire.Compare:
		return s.comparisons.begin(ctx, s.DB, op.ID, s.Position().Seq+1)
	case wire.IndexVectors, wire.DropIndex:
		return s.index(b, op)
	case wire.ImportModel, wire.BuildSpace, wire.ReviseSpace, wire.ActivateSpace, wire.DropSpace,
		wire.TakeOver:
		return s.space(ctx, op)
	}
	return fmt.Errorf("%v: %w", op.Kind, wire.ErrVersion)
}

// doing stores that the next message is being applied by several commits. If the process ends meanwhile, or
// an error occurs, again tells the next try.
func (s *State) doing(ctx context.Context) error {
	if s.again > 0 {
		return nil
	}
	b := s.DB.NewBatch()
	b.Mark(doingMark, binary.BigEndian.AppendUint32(nil, 1))
	if err := b.Commit(ctx); err != nil {
		return err
	}
	s.again = 1
	return nil
}

// add adds changes to a batch. It refuses keys of other shards, and items without a key: the database would
// choose their keys, which might belong to other shards.
func (s *State) add(b *db.Batch, changes []wire.Change) error {
	for _, ch := range changes {
		c, err := s.DB.Collection(ch.Collection)
		if err != nil {
			return err
		}
		if key := ch.Item.Key; ch.Kind != wire.Register {
			if key == "" {
				return fmt.Errorf("%w: an item without a key", db.ErrInvalid)
			}
			if of := shard.Of(key, s.shards); of != s.shard {
				return fmt.Errorf("%w: item %.80q is of shard %d, and this is shard %d", db.ErrInvalid, key,
					of, s.shard)
			}
		}
		switch ch.Kind {
		case wire.Put:
			err = b.Put(c, ch.Item.Item())
		case wire.Merge:
			err = b.Merge(c, ch.Item.Item())
		case wire.Delete:
			err = b.Delete(c, ch.Item.Key)
		case wire.Register:
			err = b.RegisterLabels(c, ch.Item.Labels)
		case wire.Expect:
			err = b.Expect(c, ch.Item.Key, ch.Old.Item())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// store commits a batch with the position after the last message of the run, and with the outcomes of its
// operations.
func (s *State) store(ctx context.Context, b *db.Batch, run ...*pending) error {
	last := run[len(run)-1].position
	for _, p := range run {
		if p.fresh {
			b.Mark(opMark(p.op.ID), outcomeMark(p.outcome))
		}
	}
	for _, o := range s.memory.old(last.Seq) {
		b.Mark(opMark(o.ID), nil)
	}
	if s.again > 0 {
		b.Mark(doingMark, nil)
	}
	for _, mark := range s.chunks.next() {
		b.Mark(mark, nil)
	}
	b.Mark(positionMark, last.mark())
	return b.Commit(ctx)
}

// applied updates the state in memory after store has committed, and wakes Wait.
func (s *State) applied(run ...*pending) (all []Applied) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position, s.again = run[len(run)-1].position, 0
	s.memory.forget(len(s.memory.old(s.position.Seq)))
	s.chunks.removed()
	for _, p := range run {
		if p.fresh {
			s.memory.add(p.outcome)
		}
		switch {
		case p.outcome != nil:
			all = append(all, Applied{p.position.Seq, p.outcome})
			if p.fresh {
				s.chunks.drop(chunkedOf(p))
			}
			if p.op != nil && (p.op.Kind == wire.IndexVectors || p.op.Kind == wire.DropIndex) {
				s.indexing.ask(p.op)
			}
		case p.op != nil && !s.chunks.has(p):
			for mark, some := range chunkMarks(p) {
				s.chunks.add(p, mark, len(some))
			}
		}
	}
	s.chunks.expire(s.position.Seq)
	close(s.moved)
	s.moved = make(chan struct{})
	return all
}
