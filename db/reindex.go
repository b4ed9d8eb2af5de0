package db

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
)

// ReindexOptions say what to reindex and how. Zero values are the defaults given here.
type ReindexOptions struct {
	// Space is the space whose projections make the codes of the new one. Where a space
	// of the collection is being built, ActiveSpace and its own number stand for that one,
	// which is completed.
	Space Space

	// Activate makes the new space the active one as soon as it is complete.
	Activate bool

	// Rate, if positive, is how many items a second get their codes at most.
	Rate int

	// Progress hears how many of all items have been looked at, in the stage "encode",
	// from Reindex's goroutine.
	Progress event.Progress
}

// Reindex makes a new space with the projections that a space has by now, from the
// stored features of all items: online updates change the codes of later items only, and
// in the new space all unlabelled items get those that the present projections make
// (the P of eq. 24 of Liu, Wang and Cheung 2021). Labelled items keep the
// codes of their labels. The new space goes on learning where the other one stands. It
// stands by, for searches that name it (Query.Space) and for Activate, unless
// ReindexOptions.Activate says otherwise.
//
// Readers and writers go on. What is written meanwhile gets its codes in the new space,
// too; writers wait for each block of codes that is stored, of some tens of
// milliseconds. It works on half of GOMAXPROCS. Memory: some 20 MB for a block, and
// bits/8 + 32 bytes for each item that has taught. Disk: the codes of all items once
// more; DropSpace gives them back.
//
// Progress is durable. When the context ends, or the process, or Close comes, which
// gives ErrClosed, the space stays as far as it has got, and every write keeps it
// current: Reindex goes on with it, or the next Open does, in the background. Reindex
// then waits for whoever builds it, and a Rate that is given holds for that one. DropSpace
// gives it up; Reindex then returns ErrNotFound. The error is ErrNoModel for a collection
// without a trained space, ErrBusy while another training begins or another space than
// the one named is being built, ErrInvalid for a codes-only collection.
func (c *Collection) Reindex(ctx context.Context, opt ReindexOptions) (*Reindexing, error) {
	c = c.orNone()
	if err := c.db.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer c.db.state.Guard.Leave()
	if opt.Rate < 0 {
		return nil, fault.Invalid("reindex %d items a second", opt.Rate)
	}
	if err := c.changeable(); err != nil {
		return nil, err
	}
	if err := c.inside().Loaded(ctx); err != nil {
		return nil, err
	}
	ctx, op := c.db.state.Signals.Begin(ctx, event.OpReindex, c.name)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	space, r, err := c.reindex(ctx, opt)
	e := c.unbuilt(space)
	if err == nil {
		e = builtSpace{Space: uint32(r.Space), Revision: r.Revision, Items: r.Items, Active: r.Active}.event()
	}
	op.End(err, e)
	return r, err
}

// reindex returns the space, too, where it comes to one.
func (c *Collection) reindex(ctx context.Context, opt ReindexOptions) (uint32, *Reindexing, error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.db.state.Stopping, func() { cancel(fault.ErrClosed) })()
	opt.Space = Space(c.spaceOr(opt.Space))
	space, err := c.reindexed(ctx, opt)
	if err == nil {
		var built builtSpace
		b := &builder{c: c, space: space, workers: work.Background(), rate: opt.Rate, progress: opt.Progress}
		if built, err = b.run(ctx); err == nil {
			return space, &Reindexing{
				Space: Space(built.Space), Parent: Space(built.Parent), Revision: built.Revision,
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
func (c *Collection) reindexed(ctx context.Context, opt ReindexOptions) (uint32, error) {
	building := uint32(0)
	err := c.read(func(_ *state.View, cv *state.CollectionView) error {
		if sp := cv.Building(); sp != nil && (opt.Space == 0 || uint32(opt.Space) == sp.Space.ID) {
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
	sp, err := c.found(ctx, false, func(v *state.View, cv *state.CollectionView) (*foundation, error) {
		if cv.Space == nil {
			return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
		}
		cv, err := cv.InSpace(uint32(opt.Space))
		if err != nil {
			return nil, err
		}
		if err := c.db.state.Engine.Admit(reindexBytes(cv), false); err != nil {
			return nil, err
		}
		return c.db.refound(ctx, v, cv, opt.Activate)
	})
	if err != nil {
		return 0, err
	}
	return sp.ID, nil
}

// takeOver makes a space that an earlier process has left behind one that somebody wants.
func (c *Collection) takeOver(ctx context.Context, space uint32) error {
	return c.inside().Look(ctx, func(s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil {
			sp.Left = false
		}
		return nil
	})
}

// activateBuilt makes a space the active one as soon as it is complete.
func (c *Collection) activateBuilt(ctx context.Context, space uint32) error {
	return c.inside().Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
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

// refound returns what a space begins with that goes on from the present revision of
// another, which cv looks at.
func (d *DB) refound(ctx context.Context, v *state.View, cv *state.CollectionView, activate bool) (*foundation, error) {
	sp := cv.Space
	f := &foundation{activate: activate, pending: cv.Pending.Clone(), relearn: cv.Recode}
	var err error
	if f.space, err = spaces.New(spaces.Stored{Bits: sp.Bits, Parent: sp.ID}, sp.Learned, sp.Positions); err != nil {
		return nil, err
	}
	if f.model, err = sp.Learned.MarshalBinary(); err != nil {
		return nil, err
	}
	if f.statistics, err = d.presentStatistics(ctx, v, cv); err != nil {
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

// presentStatistics returns the statistics of all that the rows of a space have taught.
func (d *DB) presentStatistics(ctx context.Context, v *state.View, cv *state.CollectionView) ([]byte, error) {
	l, err := d.learner(ctx, v, cv)
	if err != nil {
		return nil, err
	}
	defer l.release()
	return l.online.Statistics().MarshalBinary()
}
