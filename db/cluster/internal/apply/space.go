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
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
)

// space applies an operation on a space. It makes several commits, and may take long: the log waits until all
// items have their codes. So the numbers of codes, which order hits of equal distance, follow from the log,
// and are the same on all replicas. Searches go on.
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
	switch op.Kind { // a repetition changes nothing
	case wire.TakeOver:
		return nil
	case wire.ActivateSpace:
		return c.Activate(ctx, op.Space)
	case wire.ReviseSpace:
		if err := s.doing(ctx); err != nil { // it takes many commits, and a repetition completes them
			return err
		}
		_, err = c.ImportRevision(ctx, bytes.NewReader(op.File),
			db.ImportRevisionOptions{Space: op.Space, Revision: op.Revision})
		return err
	}
	// If the process ended during an earlier try, the existence of the space says how far that try came: a
	// space number belongs to one model.
	there, err := spaces(ctx, c)
	if err != nil {
		return err
	}
	has := slices.Contains(there, op.Space)
	if op.Kind == wire.DropSpace {
		if !has && s.again == 0 {
			return fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, op.Space, op.Collection)
		}
		if err := s.doing(ctx); err != nil || !has {
			return err
		}
		return c.DropSpace(ctx, op.Space)
	}
	switch {
	case has && s.again == 0:
		return fmt.Errorf("%w: space %d of collection %q", db.ErrExists, op.Space, op.Collection)
	case has:
		if err := built(ctx, c, op.Space); err != nil || !op.Activate {
			return err
		}
		return c.Activate(ctx, op.Space)
	}
	if err := s.doing(ctx); err != nil {
		return err
	}
	_, err = c.ImportModel(ctx, bytes.NewReader(op.File), db.ImportModelOptions{Activate: op.Activate,
		Space: op.Space})
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
