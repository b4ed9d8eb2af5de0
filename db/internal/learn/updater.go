package learn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// An updater makes one revision of a space, in the goroutine of the call that asks for it. It
// lives for one call of revise, which owns v and l.
type updater struct {
	c        Collection
	v        *state.View           // the view whose rows teach
	cv       *state.CollectionView // the collection in v, as seen in the space
	l        *learner              // the learner of the space, locked and up to date with v
	revision uint32                // the present revision: the one of cv, after commit the new one

	// The rows that have taught so far. commit stores their lessons.
	rows    []uint32       // in the order in which they have taught
	lessons []codec.Taught // what each of rows has taught

	// The rows that have not taught. They stay pending.
	waiting  *roaring.Bitmap // rows without known labels that the teacher does not let teach
	left     *roaring.Bitmap // rows that outliers leaves out
	outliers *outliers       // set by learn

	// Counts for report.Update and the descriptor of the revision.
	labelled   int // rows that have taught their labels
	unlabelled int // rows without known labels that have taught
	skipped    int // pending rows that have taught nothing
	refused    int // of skipped, the rows that TeacherAuto has refused, now or earlier
	forgotten  int // rows that were taken out of the statistics since the last revision

	progress event.Progress // nil: none
	done     int            // items that have been let teach
	total    int            // about how many are to be

	// More of the descriptor of the revision.
	teacherName string
	lead        string       // the modality that teaches items without labels, or was tried; "": none
	reason      string       // why items without labels were adopted or refused, in words
	parent      uint32       // the revision that this one is made from
	drift       report.Drift // of the items that came, before they taught; nil: not measured

	imported *model.Model // made elsewhere: commit stores it in place of what the learner solves; nil: none
	number   uint32       // of the revision that commit makes; 0: the next one

	checkpoint bool     // commit stores the statistics, however few rows have taught
	recode     []uint32 // ids of labels that have grown: commit marks the rows that carry one for recoding
}

// revise calls f with an updater of a space; 0 is the active one. The updater has a view and the
// learner, up to date with the view. From that view on the committer records changed rows in
// SpaceState.Changed, until revise returns. Updates of one space wait for each other here. If
// f fails or panics, the learner forgets its statistics, which may have learned part of it.
func (c Collection) revise(ctx context.Context, space uint32, f func(*updater) error) error {
	v, id, err := c.beginRevision(ctx, space)
	if err != nil {
		return err
	}
	defer v.Release()
	defer func() {
		// The committer stops recording rows, even if ctx has ended.
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
		left: roaring.New(), waiting: roaring.New(), forgotten: l.forgotten,
	}
	// The order of the ends: forget, release the learner, stop recording, release the view. Another
	// updater begins only after recording has stopped.
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

// insteadOfUpdate says what to do in place of updating a space without statistics: other spaces of
// the collection may have some.
func insteadOfUpdate(s *state.CollectionState) string {
	var others []string
	for _, sp := range s.Spaces {
		if sp.HasStatistics() {
			others = append(others, fmt.Sprint("space ", sp.ID))
		}
	}
	if len(others) > 0 {
		return strings.Join(others, " or ") + " has learned from labels and can be updated"
	}
	return "train anew when drift says that items have changed, or when items have got labels"
}

// beginRevision returns the view to learn from, which the caller releases, and the number of
// the space. From that view on the committer records changed rows. It waits for an update of
// the space that goes on. Errors: ErrInvalid, ErrNoModel, ErrNotFound, and ErrBusy for a space
// that is being built.
func (c Collection) beginRevision(ctx context.Context, space uint32) (*state.View, uint32, error) {
	var v *state.View
	for {
		busy := false
		// Show, as readers are to see that Written begins at 0 again.
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
			case !sp.HasStatistics():
				return fault.Invalid("space %d of collection %q was learned without labels: there is nothing to update; %s", sp.ID, s.Name, insteadOfUpdate(s))
			case sp.Numbers.Building:
				return fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", fault.ErrBusy, sp.ID, s.Name)
			}
			space = sp.ID
			if busy = sp.Changed != nil; busy {
				return nil
			}
			// Recording and the view begin in one request, so no write falls between them.
			sp.Changed, sp.Written = roaring.New(), 0
			c.DB.Committer.Touch(s)
			v = c.DB.Current.Load() // it stays while an operation runs, as this one does
			v.Acquire()
			return nil
		})
		if err != nil || !busy {
			return v, space, err
		}
		// Another update goes on: wait for the learner, which it has, and try again.
		l, err := c.in.learners.get(ctx, spaceKey{c.ID, space})
		if err != nil {
			return nil, 0, err
		}
		l.release()
		// The other updater releases the learner before it sets Changed to nil (revise): give it the
		// time.
		if err := work.SleepUntil(ctx, time.Now().Add(time.Millisecond)); err != nil {
			return nil, 0, err
		}
	}
}
