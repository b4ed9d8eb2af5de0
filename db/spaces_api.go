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

// ActiveSpace is the space that searches use; of a handle that InSpace has returned, it is
// the space of the handle.
const ActiveSpace Space = 0

// States of spaces.
const (
	SpaceBuilding = report.SpaceBuilding // not all items have their codes in it yet
	SpaceStandby  = report.SpaceStandby  // complete: it can be searched by number, and activated
	SpaceActive   = report.SpaceActive   // searches use it
)

// Spaces tells of all code spaces of the collection, by ascending number, and of the
// revisions of each that are kept. Collections of snapshots tell of those that there
// were. It reads descriptors of a few KB, not models; the error is one of reading, or
// of the context.
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

// Drift says how far the items that came last are from those that the model of the active space, or of that
// of the handle, was trained on, and so whether to train again (Drift.TrainAgain). Of a space that was learned
// from labels it is the drift of the latest update that has measured it. Of another it is measured on a
// sample of the items that have come since the training, in some tens of milliseconds; an index-only
// collection has no vectors to measure, which is ErrInvalid. It is nil if none have come.
func (c *Collection) Drift(ctx context.Context) (d Drift, err error) {
	err = c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) error {
		d, err = learn.Drift(ctx, v, cv)
		return err
	})
	return d, err
}

// InSpace returns a handle on the same collection that shows it by the codes of one
// code space, whichever is active: searches, codes of items, evaluations, encodings and
// statistics are those of this space. ActiveSpace is the active one, whichever that is at
// each call, as without InSpace. A call that is given a Space other than ActiveSpace looks
// at that one nevertheless.
//
// What is written through the handle goes into all spaces, as always, and Train and
// Rollback do what they do through any other handle. A space that is being
// built gives ErrBusy, one that does not exist ErrNotFound; so does the handle itself
// once the space has been dropped. It costs nothing; any number of goroutines may share
// it, also in a Snapshot.
func (c *Collection) InSpace(space Space) (*Collection, error) {
	in := *c
	in.space = uint32(space)
	if err := in.read(func(*state.View, *state.CollectionView) error { return nil }); err != nil {
		return nil, err
	}
	return &in, nil
}

// spaceOr returns the number of the space that is named, or else of that of the handle; 0
// is the active one.
func (c *Collection) spaceOr(named Space) uint32 { return cmp.Or(uint32(named), c.space) }

// Activate makes a space that stands by the one that searches use, in one commit; the
// one before stands by from then on. Activating the active space does nothing;
// ActiveSpace is that of the handle, as elsewhere. A space
// that is being built gives ErrBusy, one that does not exist ErrNotFound.
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
// commit, and returns its number: doing it twice changes nothing. Where there is none,
// because there never was one or it has been dropped, it gives ErrInvalid.
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

// DropSpace deletes a space, its codes, its model and its revisions, in one commit. The
// active space cannot be dropped (ErrInvalid): activate another one before; nor does
// ActiveSpace name one to drop, whatever the handle. One that is
// being built can; whoever builds it gets ErrNotFound. So can one whose codes are damaged,
// which writes to the collection are refused for. Snapshots go on seeing it.
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

// changeSpaces runs f in the committer, when all codes are in memory. Where it drops
// something, that frees disk space, and codes that are damaged are not in its way.
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
