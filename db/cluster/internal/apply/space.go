package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// space carries out what is done to spaces. It takes commits of its own, and may take long: until the codes
// of all items are there the log waits, so that the numbers of codes, which decide between hits that are
// as near, follow from the log. Searches go on.
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
	switch p.op.Kind {
	case wire.ActivateSpace:
		return c.Activate(ctx, p.op.Space) // which does nothing where it has been done
	case wire.DropSpace:
		there, err := spaces(ctx, c)
		if err != nil {
			return err
		}
		again, err := s.doing(ctx, 1)
		if err != nil || again > 0 && !slices.Contains(there, p.op.Space) {
			return err
		}
		return c.DropSpace(ctx, p.op.Space)
	}
	there, err := spaces(ctx, c)
	if err != nil {
		return err
	}
	newest := db.Space(0)
	if len(there) > 0 {
		newest = slices.Max(there)
	}
	before, err := s.doing(ctx, uint32(newest)+1)
	if err != nil {
		return err
	}
	if before > 0 && newest >= db.Space(before) { // it has been made; opening the database completes it
		if err := built(ctx, c, newest); err != nil || !p.op.Activate {
			return err
		}
		return c.Activate(ctx, newest)
	}
	file, err := s.fetch(ctx, p.op.Object)
	if err != nil {
		return fmt.Errorf("object %s of message %d: %v", p.op.Object, p.position.Seq, err) // never decided
	}
	_, err = c.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{Activate: p.op.Activate})
	return err
}

// fence refuses a number that is less than one before it, and stores it.
func (s *State) fence(ctx context.Context, collection string, number uint64) error {
	sum := sha256.Sum256([]byte(collection)) // a name may be as long as that of a mark
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

// built waits until a space is complete.
func built(ctx context.Context, c *db.Collection, space db.Space) error {
	for {
		infos, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(infos, func(i db.SpaceInfo) bool { return i.Space == space })
		if i < 0 || infos[i].State != db.SpaceBuilding {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
