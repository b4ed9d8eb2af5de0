package db

import (
	"cmp"
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// ActiveSpace is the space that searches use. For a handle that InSpace has returned it is the space
// of the handle.
const ActiveSpace Space = 0

// States of spaces.
const (
	SpaceBuilding = report.SpaceBuilding // not all items have their codes in it yet
	SpaceStandby  = report.SpaceStandby  // complete: it can be searched by number, and activated
	SpaceActive   = report.SpaceActive   // searches use it
)

// Spaces returns all spaces of codes of the collection, by ascending number, with the kept
// revisions of each. In a snapshot it returns the spaces of that state. It reads descriptors of a
// few KB, not models.
func (c *Collection) Spaces(ctx context.Context) ([]SpaceInfo, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (all []SpaceInfo, err error) {
		for i := range cv.Spaces {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			info, err := cv.SpaceInfo(v.Snap, &cv.Spaces[i])
			if err != nil {
				return nil, err
			}
			all = append(all, *info)
		}
		return all, nil
	})
}

// Drift tells how far the latest items are from the items that the model of the space was trained on, and so
// whether to train again (Drift.TrainAgain). In a space learned from labels it is the drift that the latest
// update has measured. In another space Drift measures it on a sample of the items since the training, in
// some tens of milliseconds; an index-only collection has no vectors for that (ErrInvalid). It is nil if no
// items have come.
func (c *Collection) Drift(ctx context.Context) (d Drift, err error) {
	err = c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) error {
		d, err = learn.Drift(ctx, v, cv)
		return err
	})
	return d, err
}

// InSpace returns a handle on the same collection whose searches, codes, evaluations, encodings
// and statistics are those of one space, active or not. InSpace(ActiveSpace) returns a handle
// without a space of its own. A method that takes another Space uses that one.
//
// Writes through the handle go into all spaces, as always; Train and Rollback do what they do
// through any handle. A space that is being built gives ErrBusy, an unknown one ErrNotFound, and
// so does the handle once its space has been dropped. A handle costs nothing; any number of
// goroutines may share it.
func (c *Collection) InSpace(space Space) (*Collection, error) {
	in := *c
	in.space = uint32(space)
	if err := in.read(func(*state.View, *state.CollectionView) error { return nil }); err != nil {
		return nil, err
	}
	return &in, nil
}

// spaceOr returns the number of the named space, or of the space of the handle; 0 is the active
// one.
func (c *Collection) spaceOr(named Space) uint32 { return cmp.Or(uint32(named), c.space) }

// Activate makes searches use another space, in one commit; the space before it stands by from
// then on. Activating the active space does nothing. A space that is being built gives ErrBusy, an
// unknown one ErrNotFound.
func (c *Collection) Activate(ctx context.Context, space Space) error {
	number, changes := c.spaceOr(space), false
	err := c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) (err error) {
		changes, err = tx.ActivateSpace(s, number)
		return err
	})
	if err == nil && changes {
		c.db.changed(ctx, event.SpaceActivated, event.Event{Collection: c.name, Space: number})
	}
	return err
}

// Rollback makes the space that was active before the present one active again, in one
// commit, and returns its number. Doing it twice changes nothing. Without such a space, or
// after it has been dropped, the error is ErrInvalid.
func (c *Collection) Rollback(ctx context.Context) (space Space, err error) {
	err = c.changeSpaces(ctx, false, func(tx *state.Tx, s *state.CollectionState) error {
		sp, err := tx.Rollback(s)
		space = Space(sp)
		return err
	})
	if err == nil {
		c.db.changed(ctx, event.SpaceActivated, event.Event{Collection: c.name, Space: uint32(space)})
	}
	return space, err
}

// DropSpace deletes a space with its codes, its model and its revisions, in one commit. The
// active space cannot be dropped (ErrInvalid): activate another one first. Name the space:
// ActiveSpace is refused, too. A space that is being built can be dropped; its training gets
// ErrNotFound. A space with damaged codes, for which writes to the collection are refused, can
// be dropped, too. Snapshots still see a dropped space.
func (c *Collection) DropSpace(ctx context.Context, space Space) error {
	number := uint32(space)
	err := c.changeSpaces(ctx, true, func(tx *state.Tx, s *state.CollectionState) error {
		return tx.DropSpaceNamed(s, number)
	})
	if err == nil {
		c.db.learning.Dropped(c.id, number)
		c.db.changed(ctx, event.SpaceDropped, event.Event{Collection: c.name, Space: number})
	}
	return err
}

// changeSpaces runs f in the committer, when all codes are in memory. A drop frees disk space, and
// damaged codes do not prevent it.
func (c *Collection) changeSpaces(ctx context.Context, drops bool, f func(tx *state.Tx, s *state.CollectionState) error) error {
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	if err := c.writable(); err != nil {
		return err
	}
	if err := c.inside().Loaded(ctx); err != nil && !(drops && errors.Is(err, fault.ErrCorrupt)) {
		return err
	}
	if drops {
		return c.inside().Free(ctx, f)
	}
	return c.inside().Do(ctx, 0, f)
}
