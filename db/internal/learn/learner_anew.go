package learn

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// What leaves the statistics leaves its rounding behind: 1e-16 of the largest sum that
// there has been. Where nearly all of that has gone, as with a vector that was a million
// times as long as the others, what remains would be wrong by much more than that.

// maxCancelled is by how much sums may shrink before they are accumulated anew: then
// they are within 1e-10 of what that gives.
const maxCancelled = 1e5

// trace notes how large the sums are.
func (l *learner) trace() {
	s := l.online.Statistics()
	for t := range l.traces {
		l.traces[t] = max(l.traces[t], s.Trace(t))
	}
}

// cancelled reports whether what has been taken out has left too little of the sums.
func (l *learner) cancelled() bool {
	s := l.online.Statistics()
	for t, most := range l.traces {
		if !(s.Trace(t)*maxCancelled >= most) {
			return true
		}
	}
	return false
}

// shrunk reports whether so much has been taken out that the statistics are better not
// stored: what was before is not known when they are read again.
func (l *learner) shrunk() bool {
	s := l.online.Statistics()
	for t, most := range l.traces {
		if !(s.Trace(t)*10 >= most) {
			return true
		}
	}
	return false
}

// learnAnew accumulates the statistics from what rows of the view have taught by the
// lessons that are wanted, which is what they are.
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
	clear(l.traces)
	l.online = online
	l.ahead++ // of the checkpoint, at any rate
	return nil
}
