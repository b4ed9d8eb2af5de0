package db

import (
	"context"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// PinRevision keeps a revision of a space, however many come after it, or no longer. Unless
// pinned, the first one and the latest eight are kept. A revision that is not there any more
// gives ErrNotFound, a collection without a trained space ErrNoModel.
func (c *Collection) PinRevision(ctx context.Context, space Space, revision uint32, pinned bool) error {
	c = c.orNone()
	number := c.spaceOr(space)
	return c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) error {
		sp := s.SpaceNamed(number)
		switch {
		case sp == nil && number == 0:
			return fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, s.Name)
		case sp == nil:
			return fault.NotFound("space %d of collection %q", number, s.Name)
		}
		i := slices.IndexFunc(sp.Revisions, func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision })
		if i < 0 {
			return fault.NotFound("revision %d of space %d of collection %q", revision, sp.ID, s.Name)
		}
		d := *sp.Revisions[i]
		d.Pinned = pinned
		if err := tx.WriteRevisionDescriptor(sp, &d); err != nil {
			return err
		}
		sp.Revisions = slices.Clone(sp.Revisions) // views share the slice
		sp.Revisions[i] = &d
		tx.Committer.Touch(s)
		return nil
	})
}

// RestoreRevision makes the projections of a revision that is kept those of a new revision of
// the space. What rows have taught since is taken out of what was learned; they do not teach
// again unless they are written again, or by training, nor if a later revision is restored in
// turn. Labels that have got a direction since cannot be taken back (ErrInvalid). A revision
// that is not there any more gives ErrNotFound; ErrBusy if what has been taught is being
// overwritten all the time.
func (c *Collection) RestoreRevision(ctx context.Context, space Space, revision uint32) (*Update, error) {
	in, leave, err := c.orNone().learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return in.Restore(ctx, c.spaceOr(space), revision)
}
