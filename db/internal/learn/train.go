package learn

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A training never changes a space that is there. It founds one beside it, and searches go on in
// the active space until the new one is complete.

// TrainOptions has the fields of db.TrainOptions, which is converted to it.
type TrainOptions struct {
	fit.Options
	Rows     int  // train on the first so many items, of methods that learn from labels the labelled ones; 0: on all
	Activate bool // make the new space the active one when it is complete; the first always becomes it
}

// Train learns a model from the labelled items, or without labels from all, founds a space with it, and gives
// all items their codes there. It uses all processors; db.Collection.Train has memory, waits and errors. An
// error, or the end of ctx, drops the new space again. Then space is its number if it was founded, else 0,
// for the event.
func (c Collection) Train(ctx context.Context, opt TrainOptions) (space uint32, t *report.Training, err error) {
	return c.newSpace(ctx, opt.Progress, func(ctx context.Context, v *state.View, cv *state.CollectionView) (*Foundation, *report.Training, error) {
		l, err := TrainOn(ctx, v, cv, opt)
		if err != nil {
			return nil, nil, err
		}
		f, err := l.Foundation(ctx, v, cv, opt.Activate)
		return f, &report.Training{Report: l.result.Report, LeftOut: l.leftOut}, err
	})
}

// newSpace founds a space with the model that prepare brings, and gives all items their codes there.
// The results are those of Train.
func (c Collection) newSpace(ctx context.Context, progress event.Progress,
	prepare func(ctx context.Context, v *state.View, cv *state.CollectionView) (*Foundation, *report.Training, error)) (space uint32, t *report.Training, err error) {
	// The steps: complete a reindexing that is in the way; prepare on a view and found the space, in
	// one commit; build it, block by block. Nothing is stored before the foundation. After it any
	// failure drops the space, and a crash leaves it for Resume or the next training
	// (TestTrainSettlesWhatAnotherProcessLeft of db).
	ctx, stop := c.untilDropped(ctx)
	defer stop()
	if err := c.completeLeft(ctx); err != nil {
		return 0, nil, c.dropped(ctx, err)
	}
	sp, err := c.Found(ctx, true, func(v *state.View, cv *state.CollectionView) (f *Foundation, err error) {
		f, t, err = prepare(ctx, v, cv)
		return f, err
	})
	if err != nil {
		return 0, nil, c.dropped(ctx, err)
	}
	start, complete := time.Now(), false
	defer func() {
		if !complete { // also if a callback panics
			c.abandon(ctx, sp.ID)
		}
	}()
	b := &builder{c: c, space: sp.ID, workers: work.All(), progress: progress}
	built, err := b.run(ctx)
	if err != nil {
		return sp.ID, nil, c.dropped(ctx, err)
	}
	complete = true
	t.Space, t.Revision, t.Items, t.Active = report.Space(built.Space), built.Revision, built.Items, built.Active
	seconds, commit := t.Report.Seconds, b.committing.Seconds()
	seconds["encode"], seconds["commit"] = time.Since(start).Seconds()-commit, commit
	seconds["total"] += time.Since(start).Seconds()
	return sp.ID, t, nil
}

// completeLeft completes a reindexing that an earlier process has left unfinished: a
// collection builds one space at a time. It leaves an unfinished training alone, as
// createSpace drops that in the commit that founds the new space.
func (c Collection) completeLeft(ctx context.Context) error {
	var space uint32
	err := c.Look(ctx, func(s *state.CollectionState) error {
		if sp := s.Building(); sp != nil && sp.Left && sp.Parent != 0 {
			space = sp.ID
		}
		return nil
	})
	if err != nil || space == 0 {
		return err
	}
	b := &builder{c: c, space: space, workers: work.All()}
	_, err = b.run(ctx)
	return err
}

// learned is the outcome of a training. Nothing of it is stored yet.
type learned struct {
	set     *trainingSet  // what it has learned from
	result  *fit.Result   // model, statistics, report
	space   *spaces.Space // the space of the model; without a number until it is founded
	leftOut []string      // names of the modalities that no item to learn from has
}

// sharedSpaces returns a list of names for each space that several modalities share, in the form of
// fit.Options.Shared. It looks only at the modalities with these positions.
func sharedSpaces(cv *state.CollectionView, modalities []int) (all [][]string) {
	for _, t := range modalities {
		var names []string
		for _, u := range cv.Sharing(t) {
			if slices.Contains(modalities, u) {
				names = append(names, cv.Modalities[u].Name)
			}
		}
		if len(names) > 1 && names[0] == cv.Modalities[t].Name { // once for each space
			all = append(all, names)
		}
	}
	return all
}

// TrainOn trains on the items of a view, and stores nothing. The caller keeps the
// view for as long as it uses the result. Errors: ErrInvalid, which wraps an error of
// fit.Train; an error of the store; the error of ctx.
func TrainOn(ctx context.Context, v *state.View, cv *state.CollectionView, opt TrainOptions) (*learned, error) {
	l := &learned{set: &trainingSet{v: v, cv: cv, limit: opt.Rows}}
	var err error
	if l.leftOut, err = l.set.choose(ctx, opt.Method); err != nil {
		return nil, err
	}
	if opt.Shared == nil {
		opt.Shared = sharedSpaces(cv, l.set.modalities)
	}
	modalities := make([]model.Modality, len(l.set.modalities))
	for i, t := range l.set.modalities {
		m := cv.Modalities[t]
		modalities[i] = model.Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse}
	}
	l.result, err = fit.Train(ctx, modalities, l.set, opt.Options)
	switch {
	case l.set.err != nil:
		return nil, l.set.err // reading has failed; the items are not to blame
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	l.space = spaces.New(spaces.SpaceDescriptor{Bits: l.result.Model.Bits()}, l.result.Model, l.set.modalities)
	return l, nil
}

// Foundation returns the foundation of a space with the model. Rows that have been trained on
// have a lesson: what they are in the statistics with (fit.Result.Lesson). All other
// rows with a modality of the model are pending. It reads the record of each row that was
// trained on.
func (l *learned) Foundation(ctx context.Context, v *state.View, cv *state.CollectionView, activate bool) (*Foundation, error) {
	f := &Foundation{space: l.space, activate: activate}
	var err error
	if f.model, err = l.result.Model.MarshalBinary(); err != nil {
		return nil, err
	}
	if !l.space.HasStatistics() { // no row teaches, and none waits to
		f.pending, f.before = roaring.New(), cv.NextRow
		f.report, err = json.Marshal(l.result.Report)
		return f, err
	}
	f.pending = record.UnionOf(cv.Presence, l.set.modalities)
	if f.statistics, err = l.result.Statistics.MarshalBinary(); err != nil {
		return nil, err
	}
	if f.report, err = json.Marshal(l.result.Report); err != nil {
		return nil, err
	}
	if f.expected, err = l.expected(ctx, v, cv); err != nil {
		return nil, err
	}
	it := l.set.rows.Iterator()
	// i counts rows as the training did: all labelled rows, also those without a vector.
	for i := 0; it.HasNext(); i++ {
		row := it.Next()
		if i%search.BetweenLooks == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if !f.pending.Contains(row) {
			continue // it has labels but no vector: it taught nothing
		}
		rec, err := record.ReadItem(v.Snap, cv.ID, row)
		if err != nil {
			return nil, err
		}
		lesson := l.result.Lesson(i, rec.Labels)
		if lesson.Empty() {
			continue
		}
		f.addLesson(row, l.space.Taught(lesson))
		f.pending.Remove(row)
	}
	f.revision.Items, f.revision.Labelled = len(f.rows), len(f.rows)
	return f, nil
}
