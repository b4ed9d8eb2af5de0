package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/internal/state"
)

// PinRevision keeps a revision of a space, however many come after it, or no longer. Unless
// pinned, the first one and the latest eight are kept. A revision that is not there any more
// gives ErrNotFound, a collection without a trained space ErrNoModel.
func (c *Collection) PinRevision(ctx context.Context, space Space, revision uint32, pinned bool) error {
	return c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) error {
		return tx.PinRevision(s, c.spaceOr(space), revision, pinned)
	})
}

// RestoreRevision makes the projections of a revision that is kept those of a new revision of
// the space. What rows have taught since is taken out of what was learned; they do not teach
// again unless they are written again, or by training, nor if a later revision is restored in
// turn. Labels that have got a direction since cannot be taken back (ErrInvalid). A revision
// that is not there any more gives ErrNotFound; ErrBusy if what has been taught is being
// overwritten all the time.
func (c *Collection) RestoreRevision(ctx context.Context, space Space, revision uint32) (*Update, error) {
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return in.Restore(ctx, c.spaceOr(space), revision)
}
