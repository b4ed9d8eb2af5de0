package learn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Revisions only go forward: going back makes a new revision with the projections of an earlier one. So codes
// that name a revision stay true, and a restored revision can be replaced in turn. Statistics have to go
// back, too, or the next update would bring back the forgotten lessons: all lessons later than the restored
// revision are subtracted.

// Restore makes a new revision of a space with the projections of an earlier one that is kept. space 0 is the
// active one. Rows that have taught since that revision are forgotten: their lessons go, and they do not
// become pending. Restoring the present revision changes nothing.
//
// Errors: ErrNotFound if the revision is not kept; ErrInvalid if it knows fewer labels than the
// present one, whose codes items have; ErrBusy if rows that have to be forgotten change
// meanwhile, or another revision comes.
func (c Collection) Restore(ctx context.Context, space, revision uint32) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: spaces.Restored}
	err := c.revise(ctx, space, func(u *updater) error {
		sp := u.cv.Space
		if revision != 1 && !slices.ContainsFunc(u.cv.Revisions,
			func(d *spaces.RevisionDescriptor) bool { return d.Revision == revision }) {
			return fault.NotFound("revision %d of space %d of collection %q", revision, sp.ID, u.cv.Name)
		}
		if out.Space, out.Revision = report.Space(sp.ID), sp.Revision; revision == sp.Revision {
			return nil
		}
		m, err := spaces.ReadRevision(u.v.Snap, u.cv.ID, sp, revision)
		if err != nil {
			return err
		}
		// A label that has grown since has changed codes of labels, and with them the fingerprint.
		// Projections towards the old codes would not fit the codes of items.
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
	err := u.cv.Space.ForEachLesson(ctx, u.v.Snap, u.cv.Descriptor, later,
		func(rows []uint32, items []model.Example, lessons []model.Lesson) error {
			gone = append(gone, rows...)
			return u.learning(u.l.online.Forget(ctx, items, lessons))
		})
	if err != nil {
		return err
	}
	u.forgotten += len(gone)
	sp := u.cv.Space
	// The statistics become a checkpoint below, which must not carry the rounding errors of subtracted
	// lessons.
	if u.l.shrunk() {
		earlier := func(l codec.Lesson) bool { return !later(l) }
		if err := u.l.relearn(ctx, u.v, u.cv, earlier); err != nil {
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
	err = u.inSpace(ctx, len(projections)+len(statistics),
		func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error {
			for _, row := range gone {
				// The write has moved the lesson to the queue of retractions, so the statistics would lose it
				// twice: by Forget above and as a retraction.
				if sp.Changed.Contains(row) {
					return fmt.Errorf("%w: rows that have taught space %d were overwritten meanwhile: try again",
						fault.ErrBusy, sp.ID)
				}
			}
			if err := tx.WriteRevision(sp, d, projections); err != nil {
				return err
			}
			if err := tx.WriteCheckpoint(s, sp, next, statistics, u.l.retracted); err != nil {
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
	// The learner has the projections of the replaced revision.
	u.l.forget()
	return nil
}

// ImportRevision makes the model of a file the next revision of a space; 0 is the active one. The model has
// to be a revision of the space's model. revision is its number; 0 means the next one. Labels that have grown
// in the file grow here too, and the items that carry them get new codes. The statistics stay as they are:
// they hold the lessons of the items here. If the space has that revision already, ImportRevision only makes
// the codes that an interrupted call has left out.
//
// Errors: ErrInvalid if the model is no revision of the space's model, or lacks labels that the space knows;
// ErrExists if the number is not greater than the present one; and the errors of Update.
func (c Collection) ImportRevision(ctx context.Context, f *fit.File, space,
	revision uint32) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: spaces.Imported}
	err := c.revise(ctx, space, func(u *updater) error {
		sp := u.cv.Space
		space, out.Space, out.Revision = sp.ID, report.Space(sp.ID), sp.Revision
		m, err := modelOf(u.cv, f)
		if err != nil {
			return err
		}
		there, err := u.has(m, revision)
		if there || err != nil {
			return err
		}
		if revision != 0 && revision <= sp.Revision {
			return fmt.Errorf("%w: revision %d of space %d of collection %q, whose present one is %d",
				fault.ErrExists, revision, sp.ID, u.cv.Name, sp.Revision)
		}
		grown, err := m.GrownSince(sp.Learned)
		if err == nil {
			err = u.l.online.Follow(m)
		}
		if err != nil {
			return fault.Invalid("the file is no revision of space %d of collection %q: %w", sp.ID, u.cv.Name,
				err)
		}
		for _, id := range grown {
			out.Grown = append(out.Grown, u.cv.Names[id])
		}
		u.imported, u.number = m, revision
		u.teacherName, u.recode = spaces.Imported, grown
		if u.checkpoint = len(grown) > 0; u.checkpoint && u.l.shrunk() {
			if err := u.l.relearn(ctx, u.v, u.cv, nil); err != nil {
				return err
			}
			if err := u.l.online.Follow(m); err != nil {
				return u.learning(err)
			}
		}
		err = u.commit(ctx)
		out.Revision, out.Revised = u.revision, err == nil
		// Its statistics would stay in memory for updates that may never come.
		u.l.forget()
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Recoded, err = c.recode(ctx, space); err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// has reports whether the space has m as its present revision, with this number, or with any if it is 0.
func (u *updater) has(m *model.Model, number uint32) (bool, error) {
	sp := u.cv.Space
	if number != 0 && number != sp.Revision || m.Fingerprint() != sp.Learned.Fingerprint() {
		return false, nil
	}
	a, err := m.MarshalRevision(sp.Trained)
	if errors.Is(err, model.ErrMismatch) {
		return false, nil // and GrownSince says why
	} else if err != nil {
		return false, u.learning(err)
	}
	b, err := sp.Learned.MarshalRevision(sp.Trained)
	if err != nil {
		return false, u.learning(err)
	}
	return bytes.Equal(a, b), nil
}

// modelOf returns the model of a file for a collection, which has ids for its labels.
func modelOf(cv *state.CollectionView, f *fit.File) (*model.Model, error) {
	ids := make([]uint32, len(f.Labels()))
	for i, name := range f.Labels() {
		id, known := cv.Labels.ID(name)
		if !known { // the label was renamed since its registration
			return nil, fmt.Errorf("%w: label %q of collection %q has got another name meanwhile: try again",
				fault.ErrBusy, record.Shortened(name), cv.Name)
		}
		ids[i] = id
	}
	m, err := f.Model(ids)
	if err != nil {
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	return m, nil
}

// ImportOptions are the options of ImportModel.
type ImportOptions struct {
	// make the new space the active one when it is complete; the first always becomes it
	Activate bool
	Progress event.Progress // in the stage "encode", in items; nil: none
	Space    uint32         // number of the new space; 0: the next one
	Unbuilt  bool           // gives no item a code: Reindex does
}

// ImportModel installs a space with a model from elsewhere, and gives all items their codes there. The labels
// of the file get ids in the collection. No item has taught the model here. So its statistics are empty, and
// all items wait to teach: an update learns from them alone. Errors, and the state after one, are as for
// Train.
func (c Collection) ImportModel(ctx context.Context, f *fit.File,
	opt ImportOptions) (space uint32, t *report.Training, err error) {
	return c.newSpace(ctx, opt.Progress, opt.Unbuilt, func(_ context.Context, _ *state.View,
		cv *state.CollectionView) (*NewSpace, *report.Training, error) {
		found, err := c.imported(cv, f, opt.Activate)
		if err == nil {
			found.number = opt.Space
		}
		t := &report.Training{Report: *f.Report()}
		t.Report.Seconds = map[string]float64{} // of here, which newSpace adds
		return found, t, err
	})
}

// imported returns a new space with the model of a file.
func (c Collection) imported(cv *state.CollectionView, file *fit.File, activate bool) (*NewSpace, error) {
	m, err := modelOf(cv, file)
	if err != nil {
		return nil, err
	}
	positions, err := cv.Match(m)
	if err != nil {
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	f := &NewSpace{activate: activate, pending: roaring.New(), before: cv.NextRow}
	f.space = spaces.New(spaces.SpaceDescriptor{Bits: m.Bits()}, m, positions)
	if f.model, err = m.MarshalBinary(); err != nil {
		return nil, err
	}
	if f.report, err = json.Marshal(file.Report()); err != nil {
		return nil, err
	}
	if f.space.HasStatistics() {
		f.pending = record.UnionOf(cv.Presence, positions)
		if f.statistics, err = model.NewStatistics(m).MarshalBinary(); err != nil {
			return nil, err
		}
	}
	// Check before the work, not after an hour of it. All items may teach in time.
	codes := state.CodesBytes(m.Bits(), true)
	return f, c.DB.Engine.Admit(newSpaceBytes(float64(f.bytes()), cv.Items, 0, codes), false)
}
