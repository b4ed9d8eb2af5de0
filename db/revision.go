package db

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// PinRevision keeps a revision of a space, however many come after it, or no longer. Unless pinned, the first one and the latest eight are kept. A
// revision that is not there any more gives ErrNotFound, a collection without a trained
// space ErrNoModel.
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

// teacherRestored stands in place of a teacher where a revision has the projections of
// an earlier one.
const teacherRestored = "restored"

// RestoreRevision makes the projections of a revision that is kept those of a new
// revision of the space. What rows have taught since is taken
// out of what was learned; they do not teach again unless they are written again, or by
// training, nor if a later revision is restored in turn. Labels that have got a direction since cannot be taken back (ErrInvalid). A
// revision that is not there any more gives ErrNotFound; ErrBusy if what has been
// taught is being overwritten all the time.
func (c *Collection) RestoreRevision(ctx context.Context, space Space, revision uint32) (*Update, error) {
	c = c.orNone()
	if err := c.db.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return nil, err
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	out := &Update{Teacher: teacherRestored}
	err := c.revise(ctx, c.spaceOr(space), func(u *updater) error {
		sp := u.cv.Space
		if revision != 1 && !slices.ContainsFunc(u.cv.Revisions, func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision }) {
			return fault.NotFound("revision %d of space %d of collection %q", revision, sp.ID, u.cv.Name)
		}
		if out.Space, out.Revision = Space(sp.ID), sp.Revision; revision == sp.Revision {
			return nil
		}
		m, err := spaces.ReadRevision(u.v.Snap, u.cv.ID, sp, revision)
		if err != nil {
			return err
		}
		if m.Fingerprint() != sp.Learned.Fingerprint() {
			return fault.Invalid("revision %d of space %d knows fewer labels than the present one, whose codes items have: train again", revision, sp.ID)
		}
		if err := u.restore(ctx, m, revision); err != nil {
			return err
		}
		out.Revision, out.Revised, out.Forgotten = u.revision, true, u.forgotten
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// restore makes a revision with the projections of another one.
func (u *updater) restore(ctx context.Context, m *model.Model, revision uint32) error {
	later := func(l codec.Lesson) bool { return l.Revision > revision }
	var gone []uint32
	u.l.trace()
	err := u.cv.Space.ForEachLesson(ctx, u.v.Snap, u.cv.Descriptor, later, func(rows []uint32, items []model.Example, lessons []model.Lesson) error {
		gone = append(gone, rows...)
		return u.learning(u.l.online.Forget(ctx, items, lessons))
	})
	if err != nil {
		return err
	}
	u.forgotten += len(gone)
	sp := u.cv.Space
	if u.l.shrunk() {
		earlier := func(l codec.Lesson) bool { return !later(l) }
		if err := u.l.learnAnew(ctx, u.v, u.cv, earlier); err != nil {
			return err
		}
	}
	statistics, err := u.l.online.Statistics().MarshalBinary()
	if err != nil {
		return u.learning(err)
	}
	projections, err := m.MarshalRevision(sp.Trained)
	if err != nil {
		return u.learning(err)
	}
	next := sp.Revised(sp.Revision+1, m)
	u.parent, u.teacherName = revision, teacherRestored
	d, err := u.descriptor(m, next.Revision, projections)
	if err != nil {
		return err
	}
	err = u.inSpace(ctx, len(projections)+len(statistics), func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error {
		for _, row := range gone {
			if sp.Changed.Contains(row) {
				return fmt.Errorf("%w: rows that have taught space %d were overwritten meanwhile: try again", fault.ErrBusy, sp.ID)
			}
		}
		if err := tx.WriteRevision(sp, d, projections); err != nil {
			return err
		}
		if err := tx.WriteCheckpoint(sp, statistics, u.l.outbox); err != nil {
			return err
		}
		for _, row := range gone {
			tx.Block(codec.LessonsKey(s.ID, sp.ID, row), -1, false).Clear(byte(row))
		}
		sp.Numbers.Taught -= uint64(len(gone))
		sp.Numbers.Checkpoint = uint64(next.Revision)
		sp.Revise(next)
		tx.Committer.Touch(s)
		return nil
	})
	if err != nil {
		return err
	}
	u.revision = next.Revision
	u.l.forget() // its projections are not those of its statistics
	return nil
}
