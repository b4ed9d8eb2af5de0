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

// A ReindexOptions is db.ReindexOptions; 0 is the active space.
type ReindexOptions struct {
	Space    uint32
	Activate bool
	Rate     int
	Progress event.Progress
}

// Reindex builds a new space with the projections of another, or completes the one that is
// being built. It returns the space, too, where it comes to one.
func (c Collection) Reindex(ctx context.Context, opt ReindexOptions) (uint32, *report.Reindexing, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.DB.Stopping, func() { cancel(fault.ErrClosed) })()
	space, err := c.reindexed(ctx, opt)
	if err == nil {
		var built builtSpace
		b := &builder{c: c, space: space, workers: work.Background(), rate: opt.Rate, progress: opt.Progress}
		if built, err = b.run(ctx); err == nil {
			return space, &report.Reindexing{
				Space: report.Space(built.Space), Parent: report.Space(built.Parent), Revision: built.Revision,
				Items: built.Items, Active: built.Active, Seconds: time.Since(start).Seconds(),
			}, nil
		}
	}
	if errors.Is(context.Cause(ctx), fault.ErrClosed) && errors.Is(err, context.Canceled) {
		err = fault.ErrClosed
	}
	return space, nil, err
}

// reindexed returns the space that is to be built: one that is being built already, or
// a new one.
func (c Collection) reindexed(ctx context.Context, opt ReindexOptions) (uint32, error) {
	building := uint32(0)
	err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
		if sp := cv.Building(); sp != nil && (opt.Space == 0 || opt.Space == sp.Space.ID) {
			building = sp.Space.ID
		}
		return nil
	})
	if err == nil && building != 0 {
		err = c.takeOver(ctx, building)
	}
	if err == nil && building != 0 && opt.Activate {
		err = c.activateBuilt(ctx, building)
	}
	if err != nil || building != 0 {
		return building, err
	}
	sp, err := c.Found(ctx, false, func(v *state.View, cv *state.CollectionView) (*Foundation, error) {
		if cv.Space == nil {
			return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
		}
		cv, err := cv.InSpace(opt.Space)
		if err != nil {
			return nil, err
		}
		if err := c.DB.Engine.Admit(reindexBytes(cv), false); err != nil {
			return nil, err
		}
		return c.in.Refound(ctx, v, cv, opt.Activate)
	})
	if err != nil {
		return 0, err
	}
	return sp.ID, nil
}

// takeOver makes a space that an earlier process has left behind one that somebody wants.
func (c Collection) takeOver(ctx context.Context, space uint32) error {
	return c.Look(ctx, func(s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil {
			sp.Left = false
		}
		return nil
	})
}

// activateBuilt makes a space the active one as soon as it is complete.
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

// Refound returns what a space begins with that goes on from the present revision of
// another, which cv looks at.
func (d *Database) Refound(ctx context.Context, v *state.View, cv *state.CollectionView, activate bool) (*Foundation, error) {
	sp := cv.Space
	f := &Foundation{activate: activate, pending: cv.Pending.Clone(), relearn: cv.Recode}
	var err error
	if f.space, err = spaces.New(spaces.Stored{Bits: sp.Bits, Parent: sp.ID}, sp.Learned, sp.Positions); err != nil {
		return nil, err
	}
	if f.model, err = sp.Learned.MarshalBinary(); err != nil {
		return nil, err
	}
	if f.statistics, err = d.Statistics(ctx, v, cv); err != nil {
		return nil, err
	}
	if f.report, err = spaces.ReadReport(v.Snap, cv.ID, sp.ID); err != nil {
		return nil, err
	}
	err = record.ForEachEntry(v.Snap, codec.NumberKey(codec.KindLessons, cv.ID, sp.ID), func(row uint32, entry []byte) error {
		l, err := codec.DecodeLesson(sp.Bits, entry)
		if err != nil {
			return fault.Corrupt(err, "lesson of row %d", row)
		}
		f.taught(row, l.Codes)
		return ctx.Err()
	})
	return f, err
}

// Statistics returns the statistics of all that the rows of a space have taught.
func (d *Database) Statistics(ctx context.Context, v *state.View, cv *state.CollectionView) ([]byte, error) {
	l, err := d.learner(ctx, v, cv)
	if err != nil {
		return nil, err
	}
	defer l.release()
	return l.online.Statistics().MarshalBinary()
}

// ReindexEvent returns what events say of a reindexing.
func ReindexEvent(r *report.Reindexing) event.Event {
	return builtSpace{Space: uint32(r.Space), Revision: r.Revision, Items: r.Items, Active: r.Active}.event()
}
