package apply

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// Continue turns the backup of a shard, which ends exactly at a sequence, into a replica of a part of that
// shard. It keeps the remembered outcomes, so no operation of the shard is applied twice.
func Continue(ctx context.Context, d *db.DB, of Identity, seq uint64) error {
	mark, err := d.Mark(positionMark)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	var at Position
	if err == nil {
		if at, err = readPosition(mark); err != nil {
			return fmt.Errorf("%w: %w", db.ErrCorrupt, err)
		}
	}
	if at.Seq != seq {
		return fmt.Errorf("%w: the backup goes to message %d of the log, and the part of the shard begins behind %d", db.ErrInvalid, at.Seq, seq)
	}
	b := d.NewBatch()
	b.Mark(ofMark, of.mark())
	b.Mark(closedMark, nil)
	return b.Commit(ctx)
}

// Hold waits until no message is being applied, and prevents further ones until free is called.
func (s *State) Hold(ctx context.Context) (free func(), err error) {
	select {
	case s.applying <- struct{}{}:
		return sync.OnceFunc(func() { <-s.applying }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Between is Hold between two messages: no message is applied in part. If one is, and waits to be applied
// again, Between returns db.ErrBusy: the database is neither before nor after that message. It returns the
// same if a message is still being applied when the context ends.
func (s *State) Between(ctx context.Context) (free func(), err error) {
	free, err = s.Hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: message %d is being applied: %w", db.ErrBusy, s.Position().Seq+1, err)
	}
	if s.again > 0 { // it changes only while Apply holds, so not now
		free()
		return nil, fmt.Errorf("%w: message %d has been applied in part", db.ErrBusy, s.Position().Seq+1)
	}
	return free, nil
}

// Closed returns the sequence of the message behind which the shard refuses all operations, because it is
// being split; 0: there is none.
func (s *State) Closed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// closed reads the mark of wire.Close.
func closed(d *db.DB) (seq uint64, err error) {
	b, err := d.Mark(closedMark)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(b) != 8:
		return 0, fmt.Errorf("%w: mark %s: %d bytes", db.ErrCorrupt, closedMark, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// own applies an operation of the cluster itself.
func (s *State) own(ctx context.Context, b *db.Batch, p *pending) error {
	switch p.op.Kind {
	case wire.Purge:
		return s.purge(ctx)
	case wire.Close:
		if s.closed == 0 {
			b.Mark(closedMark, binary.BigEndian.AppendUint64(nil, p.position.Seq))
		}
	}
	return nil
}

// purgeItems bounds the items that purge removes in one commit.
const purgeItems = 2000

// purge removes the items of other shards. It takes many commits: if the process ends in between, purge is
// repeated for the remaining items.
func (s *State) purge(ctx context.Context) error {
	if err := s.doing(ctx); err != nil {
		return err
	}
	names, err := s.DB.Collections()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		c, err := s.DB.Collection(name)
		if err == nil {
			err = s.purgeCollection(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("purge of collection %q: %w", name, err)
		}
	}
	return nil
}

func (s *State) purgeCollection(ctx context.Context, c *db.Collection) error {
	b := s.DB.NewBatch()
	for key, err := range c.Keys(ctx, "") {
		if err != nil {
			return err
		}
		if shard.Of(key, s.shards) == s.index {
			continue
		}
		if err := b.Delete(c, key); err != nil {
			return err
		}
		if b.Len() < purgeItems {
			continue
		}
		if err := b.Commit(ctx); err != nil {
			return err
		}
		b = s.DB.NewBatch()
	}
	if b.Len() == 0 {
		return nil
	}
	return b.Commit(ctx)
}
