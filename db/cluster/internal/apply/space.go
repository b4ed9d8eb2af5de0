package apply

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
)

// space applies an operation on a space. The codes of a new space come by BuildSpace, some rows at a time. So
// writes wait for some rows at most, and the numbers of codes, which order hits of equal distance, follow
// from the log: they are the same on all replicas.
func (s *State) space(ctx context.Context, op *wire.Op) error {
	c, err := s.DB.Collection(op.Collection)
	if err != nil {
		return err
	}
	if op.Fence > 0 {
		if err := s.fence(ctx, op.Collection, op.Fence); err != nil {
			return err
		}
	}
	if op.Kind == wire.TakeOver {
		return nil
	}
	states, err := spaces(ctx, c)
	if err != nil {
		return err
	}
	is, has := states[op.Space]
	if op.Kind == wire.ActivateSpace {
		if has && is == report.SpaceBuilding {
			return building(op.Space, op.Collection)
		}
		return c.Activate(ctx, op.Space)
	}
	// Some take several commits. If the process ended between them, s.again says so, and a repetition
	// completes them: a number belongs to one model.
	switch op.Kind {
	case wire.BuildSpace:
		switch {
		case !has:
			return fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, op.Space, op.Collection)
		case is != report.SpaceBuilding:
			return nil
		}
		_, err := c.Reindex(ctx, db.ReindexOptions{Space: op.Space, Rows: op.Rows})
		return err
	case wire.DropSpace:
		if !has && s.again == 0 {
			return fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, op.Space, op.Collection)
		}
		if err := s.doing(ctx); err != nil || !has {
			return err
		}
		return c.DropSpace(ctx, op.Space)
	}
	if has && op.Kind == wire.ImportModel {
		if s.again > 0 {
			return nil
		}
		return fmt.Errorf("%w: space %d of collection %q", db.ErrExists, op.Space, op.Collection)
	}
	for other, is := range states {
		if is == report.SpaceBuilding {
			return building(other, op.Collection)
		}
	}
	if err := s.doing(ctx); err != nil {
		return err
	}
	if op.Kind == wire.ReviseSpace {
		_, err = c.ImportRevision(ctx, bytes.NewReader(op.File),
			db.ImportRevisionOptions{Space: op.Space, Revision: op.Revision})
	} else {
		_, err = c.ImportModel(ctx, bytes.NewReader(op.File),
			db.ImportModelOptions{Space: op.Space, Unbuilt: true})
	}
	return err
}

// building refuses an operation that a database would refuse with db.ErrBusy, which no replica may decide by.
func building(space db.Space, collection string) error {
	return fmt.Errorf("%w: space %d of collection %q is being built: wait for it, or drop it", db.ErrConflict,
		space, collection)
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

// spaces returns the states of the spaces of a collection.
func spaces(ctx context.Context, c *db.Collection) (map[db.Space]report.SpaceState, error) {
	infos, err := c.Spaces(ctx)
	all := map[db.Space]report.SpaceState{}
	for _, i := range infos {
		all[i.Space] = i.State
	}
	return all, err
}
