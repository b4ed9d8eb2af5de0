package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// Subtraction leaves rounding behind: an item that is taken out of the statistics leaves 1e-16
// of the largest sum that there has been. If nearly all of a sum has gone, as with a vector a
// million times as long as the others, the rest has a large relative error. Then the sums are
// made anew.

// maxCancelled is the factor by which a trace may shrink before the sums are made anew. Up to
// it they are within about 1e-10 of new sums.
const maxCancelled = 1e5

// trace records the largest trace of A of each modality. Call it before something is taken out.
func (l *learner) trace() {
	s := l.online.Statistics()
	for t := range l.traces {
		l.traces[t] = max(l.traces[t], s.Trace(t))
	}
}

// cancelled reports whether so much has been taken out that the sums have to be made anew. A
// NaN counts as that.
func (l *learner) cancelled() bool {
	s := l.online.Statistics()
	for t, most := range l.traces {
		if !(s.Trace(t)*maxCancelled >= most) {
			return true
		}
	}
	return false
}

// shrunk reports whether a trace has shrunk to less than a tenth. Such statistics must not be
// stored as a checkpoint: traces are not stored, so that later shrinking could not be noticed.
func (l *learner) shrunk() bool {
	s := l.online.Statistics()
	for t, most := range l.traces {
		if !(s.Trace(t)*10 >= most) {
			return true
		}
	}
	return false
}

// learnAnew sums the statistics again from the rows of the view whose lessons match want; nil
// means all. The caller knows that the statistics consist of just these lessons. It reads the
// features of all these rows, at the cost of model.Online.Relearn.
func (l *learner) learnAnew(ctx context.Context, v *state.View, cv *state.CollectionView, want func(codec.Lesson) bool) error {
	m := cv.Space.Learned
	online, err := model.NewOnline(m, model.NewStatistics(m))
	if err != nil {
		return err
	}
	online.Workers = l.online.Workers
	err = cv.Space.ForEachLesson(ctx, v.Snap, cv.Descriptor, want, func(_ []uint32, items []model.Example, lessons []model.Lesson) error {
		return online.Relearn(ctx, items, lessons)
	})
	if err != nil {
		return err
	}
	// The new sums carry no rounding of what has gone.
	clear(l.traces)
	l.online = online
	l.ahead++ // the checkpoint may have older rounding
	return nil
}
