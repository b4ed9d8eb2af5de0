package learn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// Revisions only go forward: to go back to an earlier one is a new revision with its projections.
// So codes that name a revision stay true, and a restored revision can be left again. Statistics
// have to go back, too, or the next update would bring back what was to be forgotten: all lessons
// later than the restored revision are taken out.

// Restore makes a new revision of a space with the projections of an earlier one that is kept.
// space 0 is the active one. Rows that have taught since that revision are forgotten: their
// lessons go, and they do not become pending. To restore the present revision changes nothing.
//
// Errors: ErrNotFound if the revision is not kept; ErrInvalid if it knows fewer labels than the
// present one, whose codes items have; ErrBusy if rows that have to be forgotten change
// meanwhile, or another revision comes.
func (c Collection) Restore(ctx context.Context, space, revision uint32) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: spaces.Restored}
	err := c.revise(ctx, space, func(u *updater) error {
		sp := u.cv.Space
		if revision != 1 && !slices.ContainsFunc(u.cv.Revisions, func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision }) {
			return fault.NotFound("revision %d of space %d of collection %q", revision, sp.ID, u.cv.Name)
		}
		if out.Space, out.Revision = report.Space(sp.ID), sp.Revision; revision == sp.Revision {
			return nil
		}
		m, err := spaces.ReadRevision(u.v.Snap, u.cv.ID, sp, revision)
		if err != nil {
			return err
		}
		// A label that has grown since has changed codes of labels, and the fingerprint has these.
		// Projections towards the old codes would not fit the codes that items have.
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

// restore commits a revision with m, the model of an earlier revision, and with the statistics
// without later lessons. The learner drops its statistics after that, and loads them with the
// restored projections when it is next needed.
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
	// The statistics become a checkpoint below, which must not carry the rounding of what was taken
	// out.
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
	u.parent, u.teacherName = revision, spaces.Restored
	d := u.descriptor(next.Revision, projections)
	err = u.inSpace(ctx, len(projections)+len(statistics), func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error {
		for _, row := range gone {
			// The write has moved the lesson to the outbox, and the statistics would lose it twice: by
			// Forget above and as a departure.
			if sp.Changed.Contains(row) {
				return fmt.Errorf("%w: rows that have taught space %d were overwritten meanwhile: try again", fault.ErrBusy, sp.ID)
			}
		}
		if err := tx.WriteRevision(sp, d, projections); err != nil {
			return err
		}
		if err := tx.WriteCheckpoint(s, sp, next, statistics, u.l.outbox); err != nil {
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
	// Its projections are those of the replaced revision.
	u.l.forget()
	return nil
}
