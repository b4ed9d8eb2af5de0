package learn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// After updates, items without labels have codes of different revisions: each has the code of the revision in
// use when it was written. Reindexing gives all items codes of the present revision. It does so in a new
// space: no search sees half of it, and you can go back to the old space.

// ReindexOptions are the options of Collection.Reindex, as db.ReindexOptions has them.
type ReindexOptions struct {
	Space    uint32         // the space to reindex; 0: the one being built, else the active one
	Activate bool           // make the space the active one when it is complete
	Rate     int            // the most items a second; 0: no limit
	Rows     uint64         // see builder.to; 0: all
	Progress event.Progress // called in the goroutine of the caller; nil: none
}

// Reindex builds a new space with the projections of the present revision of another space. If
// a space is being built and opt names no other, Reindex completes that one instead. It uses
// half of the processors; db.Collection.Reindex has memory, waits and errors. When ctx ends or
// Close begins (ErrClosed), the space stays as far as it has got. The first result is the
// number of the space, 0 if there is none yet; it is valid with an error, too, for the event.
func (c Collection) Reindex(ctx context.Context, opt ReindexOptions) (uint32, *report.Reindexing, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Close waits for this call: end it when Close begins.
	defer context.AfterFunc(c.DB.Stopping, func() { cancel(fault.ErrClosed) })()
	space, err := c.reindexed(ctx, opt)
	if err == nil {
		var built builtSpace
		b := &builder{c: c, space: space, workers: work.Background(), rate: opt.Rate, to: opt.Rows,
			progress: opt.Progress}
		if built, err = b.run(ctx); err == nil {
			return space, &report.Reindexing{
				Space: report.Space(built.Space), Parent: report.Space(built.Parent),
				Revision: built.Revision,
				Items:    built.Items, Active: built.Active, Seconds: time.Since(start).Seconds(),
			}, nil
		}
	}
	// The ctx of the caller goes on, so a cancellation would puzzle.
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	return space, nil, err
}

// reindexed returns the number of the space to build: the one that is being built already, or
// a new one, which it installs.
func (c Collection) reindexed(ctx context.Context, opt ReindexOptions) (uint32, error) {
	building := uint32(0)
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		// A call that names another space wants a new one. Install refuses that with ErrBusy.
		if sp := cv.Building(); sp != nil && (opt.Space == 0 || opt.Space == sp.Space.ID) {
			building = sp.Space.ID
		}
		return nil
	})
	// Three requests and no single one: if the space is completed or dropped meanwhile,
	// activateBuilt and the builder find that out.
	if err == nil && building != 0 {
		err = c.takeOver(ctx, building)
	}
	if err == nil && building != 0 && opt.Activate {
		err = c.activateBuilt(ctx, building)
	}
	if err != nil || building != 0 {
		return building, err
	}
	sp, err := c.Install(ctx, false, func(v *state.View, cv *state.CollectionView) (*NewSpace, error) {
		if cv.Space == nil {
			return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
		}
		cv, err := cv.InSpace(opt.Space)
		if err != nil {
			return nil, err
		}
		// Check before the work, not after an hour of it.
		if err := c.DB.Engine.Admit(reindexBytes(cv), false); err != nil {
			return nil, err
		}
		return c.in.Reinstall(ctx, v, cv, opt.Activate)
	})
	if err != nil {
		return 0, err
	}
	return sp.ID, nil
}

// takeOver notes that a call wants a space that was left unfinished. A training then does not
// replace it.
func (c Collection) takeOver(ctx context.Context, space uint32) error {
	return c.Look(ctx, func(s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil {
			sp.Left = false
		}
		return nil
	})
}

// activateBuilt makes a space the active one when it is complete, at once if it is already.
func (c Collection) activateBuilt(ctx context.Context, space uint32) error {
	return c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
		sp := s.SpaceByID(space)
		switch {
		case sp == nil:
			return fault.NotFound("space %d of collection %q, which was being built", space, s.Name)
		case sp.Numbers.Building:
			sp.Numbers.Activate = true
			tx.Committer.Touch(s)
		case sp != s.Active():
			tx.Activate(s, sp)
		}
		return nil
	})
}

// Reinstall returns a new space that continues the present revision of the space of cv, with its statistics,
// lessons and pending rows. Rows that wait for recoding there have to teach again. Reinstall brings the
// learner of the old space up to date, and waits for a running update of it. It shares cv.Recode with the
// view.
func (d *Database) Reinstall(ctx context.Context, v *state.View, cv *state.CollectionView,
	activate bool) (*NewSpace, error) {
	sp := cv.Space
	f := &NewSpace{activate: activate, pending: cv.Pending.Clone(), relearn: cv.Recode}
	f.space = spaces.New(spaces.SpaceDescriptor{Bits: sp.Bits, Parent: sp.ID}, sp.Learned, sp.Positions)
	var err error
	if f.model, err = sp.Learned.MarshalBinary(); err != nil {
		return nil, err
	}
	f.before, f.expected = trainedOn(cv).Rows, trainedOn(cv).Expected
	if sp.HasStatistics() {
		if f.statistics, err = d.Statistics(ctx, v, cv); err != nil {
			return nil, err
		}
	}
	if f.report, err = spaces.ReadReport(v.Snap, cv.ID, sp.ID); err != nil {
		return nil, err
	}
	err = record.ForEachEntry(v.Snap, codec.NumberKey(codec.KindLessons, cv.ID, sp.ID),
		func(row uint32, entry []byte) error {
			l, err := codec.DecodeLesson(sp.Bits, entry)
			if err != nil {
				return fault.Corrupt(err, "lesson of row %d", row)
			}
			// The revision of a lesson does not matter here: in the new space all are lessons of revision
			// 1, and the checkpoint has them.
			f.addLesson(row, l.Taught)
			return ctx.Err()
		})
	return f, err
}

// Statistics returns the statistics of the space of cv in their binary form, up to date with
// the view. It waits while another goroutine uses the learner of the space, and loads the
// learner if it is not in memory. The space must have statistics.
func (d *Database) Statistics(ctx context.Context, v *state.View, cv *state.CollectionView) ([]byte, error) {
	l, err := d.learner(ctx, v, cv)
	if err != nil {
		return nil, err
	}
	defer l.release()
	return l.online.Statistics().MarshalBinary()
}

// ReindexEvent returns the fields of events about a completed reindexing.
func ReindexEvent(r *report.Reindexing) event.Event {
	return builtSpace{Space: uint32(r.Space), Revision: r.Revision, Items: r.Items, Active: r.Active}.event()
}
