package learn

import (
	"context"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// An updater makes one revision of a space.
type updater struct {
	c        Collection
	v        *state.View
	cv       *state.CollectionView // as seen in the space
	l        *learner
	revision uint32 // afterwards

	rows        []uint32 // that have taught
	lessons     [][]byte // the codes that they have taught, as they are stored
	seen        *roaring.Bitmap
	waiting     *roaring.Bitmap // rows without labels that have not been let teach
	left        *roaring.Bitmap // rows whose vectors are far too long; they stay pending
	outliers    *outliers
	labelled    int
	unlabelled  int
	skipped     int
	refused     int // of these, rows without labels that were tried and not let teach
	forgotten   int
	lead        string
	progress    event.Progress
	done        int // items that have taught, of about total
	total       int
	reason      string
	teacherName string
	parent      uint32   // of the revision
	checkpoint  bool     // store the statistics, however few have taught
	recode      []uint32 // labels whose rows are to get other codes
	drift       *report.Drift
}

// revise runs f with an updater of a space: it has a view, and the learner is up to
// date with it. Rows that change from then on are recorded. Where f fails, the learner
// forgets what it has learned.
func (c Collection) revise(ctx context.Context, space uint32, f func(*updater) error) error {
	v, id, err := c.beginRevision(ctx, space)
	if err != nil {
		return err
	}
	defer v.Release()
	defer func() {
		// Whatever became of the context.
		_ = c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			if sp := s.SpaceByID(id); sp != nil {
				sp.Changed = nil
			}
			return nil
		})
	}()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return err
	}
	if cv, err = cv.InSpace(id); err != nil {
		return err
	}
	l, err := c.in.learner(ctx, v, cv)
	if err != nil {
		return err
	}
	defer l.release()
	u := &updater{
		c: c, v: v, cv: cv, l: l, revision: cv.Space.Revision, parent: cv.Space.Revision,
		seen: roaring.New(), left: roaring.New(), waiting: roaring.New(), forgotten: l.forgotten,
	}
	kept := false
	defer func() {
		if !kept {
			l.forget()
		}
	}()
	err = f(u)
	kept = err == nil
	return err
}

// beginRevision returns the view to learn from and the number of the space; from then
// on the committer records the rows that change.
func (c Collection) beginRevision(ctx context.Context, space uint32) (*state.View, uint32, error) {
	var v *state.View
	for {
		busy := false
		// It is shown that what was written so far is being looked at.
		err := c.Show(ctx, func(s *state.CollectionState) error {
			sp := s.SpaceByID(space)
			if space == 0 {
				sp = s.Active()
			}
			switch {
			case s.CodesOnly():
				return fault.Invalid("collection %q has no model: its items bring their codes", s.Name)
			case sp == nil && space == 0:
				return fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, s.Name)
			case sp == nil:
				return fault.NotFound("space %d of collection %q", space, s.Name)
			case sp.Numbers.Building:
				return fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", fault.ErrBusy, sp.ID, s.Name)
			}
			space = sp.ID
			if busy = sp.Changed != nil; busy {
				return nil
			}
			sp.Changed, sp.Written = roaring.New(), 0
			c.DB.Committer.Touch(s)
			v = c.DB.Current.Load() // only the committer replaces it
			v.Acquire()
			return nil
		})
		if err != nil || !busy {
			return v, space, err
		}
		// Another update goes on; it has the learner until it has ended.
		l, err := c.in.learners.get(ctx, learnerKey{c.ID, space})
		if err != nil {
			return nil, 0, err
		}
		l.release()
		if err := work.SleepUntil(ctx, time.Now().Add(time.Millisecond)); err != nil {
			return nil, 0, err
		}
	}
}
