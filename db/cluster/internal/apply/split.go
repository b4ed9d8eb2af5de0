package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
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

// space applies an operation on a space. It makes several commits, and may take long: the log waits until all
// items have their codes. So the numbers of codes, which order hits of equal distance, follow from the log,
// and are the same on all replicas. Searches go on.
func (s *State) space(ctx context.Context, p *pending) error {
	c, err := s.DB.Collection(p.op.Collection)
	if err != nil {
		return err
	}
	if p.op.Fence > 0 {
		if err := s.fence(ctx, p.op.Collection, p.op.Fence); err != nil {
			return err
		}
	}
	switch p.op.Kind { // a repetition changes nothing
	case wire.TakeOver:
		return nil
	case wire.ActivateSpace:
		return c.Activate(ctx, p.op.Space)
	case wire.ReviseSpace:
		file, err := s.object(ctx, p)
		if err != nil {
			return err
		}
		if err := s.doing(ctx); err != nil { // it takes many commits, and a repetition completes them
			return err
		}
		_, err = c.ImportRevision(ctx, bytes.NewReader(file),
			db.ImportRevisionOptions{Space: p.op.Space, Revision: p.op.Revision})
		return err
	}
	// If the process ended during an earlier try, the existence of the space says how far that try came: a
	// space number belongs to one model.
	there, err := spaces(ctx, c)
	if err != nil {
		return err
	}
	has := slices.Contains(there, p.op.Space)
	if p.op.Kind == wire.DropSpace {
		if !has && s.again == 0 {
			return fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, p.op.Space, p.op.Collection)
		}
		if err := s.doing(ctx); err != nil || !has {
			return err
		}
		return c.DropSpace(ctx, p.op.Space)
	}
	switch {
	case has && s.again == 0:
		return fmt.Errorf("%w: space %d of collection %q", db.ErrExists, p.op.Space, p.op.Collection)
	case has:
		if err := built(ctx, c, p.op.Space); err != nil || !p.op.Activate {
			return err
		}
		return c.Activate(ctx, p.op.Space)
	}
	file, err := s.object(ctx, p)
	if err != nil {
		return err
	}
	if err := s.doing(ctx); err != nil {
		return err
	}
	_, err = c.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{Activate: p.op.Activate,
		Space: p.op.Space})
	return err
}

// fence refuses a number lower than an earlier one, and stores it.
func (s *State) fence(ctx context.Context, collection string, number uint64) error {
	sum := sha256.Sum256([]byte(collection)) // a collection name may be as long as the name of a mark
	name := fencePrefix + hex.EncodeToString(sum[:8])
	switch b, err := s.DB.Mark(name); {
	case errors.Is(err, db.ErrNotFound):
	case err != nil:
		return err
	case len(b) == 8 && binary.BigEndian.Uint64(b) > number:
		return fmt.Errorf("%w: collection %q: a later training has taken over", db.ErrConflict, collection)
	case len(b) == 8 && binary.BigEndian.Uint64(b) == number:
		return nil
	}
	b := s.DB.NewBatch()
	b.Mark(name, binary.BigEndian.AppendUint64(nil, number))
	return b.Commit(ctx)
}

// spaces returns the numbers of the spaces of a collection.
func spaces(ctx context.Context, c *db.Collection) (all []db.Space, err error) {
	infos, err := c.Spaces(ctx)
	for _, i := range infos {
		all = append(all, i.Space)
	}
	return all, err
}

// ErrStalled says that the codes of a space make no progress. Reopening the database continues with them.
var ErrStalled = errors.New("the codes of a space do not come")

// stalled is how long a space that is being built may make no progress.
const stalled = time.Minute

// built waits until a space is complete. Opening the database has resumed building it.
func built(ctx context.Context, c *db.Collection, space db.Space) error {
	last, since := -1, time.Now()
	for {
		infos, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(infos, func(i report.SpaceInfo) bool { return i.Space == space })
		if i < 0 || infos[i].State != report.SpaceBuilding {
			return nil
		}
		if infos[i].Built != last {
			last, since = infos[i].Built, time.Now()
		}
		if time.Since(since) > stalled {
			return fmt.Errorf("space %d of collection %q: %w", space, c.Name(), ErrStalled)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Digest returns a SHA-256 of everything that an export of the database contains: schemas, labels with their
// ids, items in order, with codes and rows. Replicas of a shard at the same position have the same digest. It
// reads the whole database.
func (s *State) Digest(ctx context.Context) ([]byte, Position, error) {
	var at Position
	snap, err := s.DB.Snapshot()
	if err != nil {
		return nil, at, err
	}
	defer snap.Close()
	if b, err := snap.Mark(positionMark); err == nil {
		if at, err = readPosition(b); err != nil {
			return nil, at, err
		}
	} else if !errors.Is(err, db.ErrNotFound) {
		return nil, at, err
	}
	names, err := s.DB.Collections()
	if err != nil {
		return nil, at, err
	}
	h := sha256.New()
	put := json.NewEncoder(h).Encode
	for _, name := range names {
		c, err := snap.Collection(name)
		if errors.Is(err, db.ErrNotFound) { // created after the snapshot
			continue
		} else if err != nil {
			return nil, at, err
		}
		if err := digest(ctx, c, put); err != nil {
			return nil, at, err
		}
	}
	return h.Sum(nil), at, nil
}

func digest(ctx context.Context, c *db.Collection, put func(any) error) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	if err := errors.Join(put(c.Name()), put(schema), put(labels)); err != nil {
		return err
	}
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return err
		}
		if err := put(it); err != nil {
			return err
		}
	}
	for coded, err := range c.Codes(ctx, "") {
		if errors.Is(err, db.ErrNoModel) {
			return nil
		} else if err != nil {
			return err
		}
		if err := put(coded); err != nil {
			return err
		}
	}
	return nil
}
