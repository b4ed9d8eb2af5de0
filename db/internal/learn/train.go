package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// A training never changes an existing space. It installs one beside it, and searches use the active space
// until the new one is complete.

// TrainOptions has the fields of db.TrainOptions, which is converted to it.
type TrainOptions struct {
	fit.Options
	// train on the first so many items, of methods that learn from labels the labelled ones; 0: on all
	Rows     int
	Activate bool // make the new space the active one when it is complete; the first always becomes it
}

// Train learns a model from the labelled items, or without labels from all, installs a space with it, and
// gives all items their codes there. It uses all processors; db.Collection.Train has memory, waits and
// errors. An error, or the end of ctx, drops the new space again. Then space is its number if it was
// installed, else 0, for the event.
func (c Collection) Train(ctx context.Context,
	opt TrainOptions) (space uint32, t *report.Training, err error) {
	return c.newSpace(ctx, opt.Progress, false, func(ctx context.Context, v *state.View,
		cv *state.CollectionView) (*NewSpace, *report.Training, error) {
		l, err := TrainOn(ctx, v, cv, opt)
		if err != nil {
			return nil, nil, err
		}
		f, err := l.NewSpace(ctx, v, cv, opt.Activate)
		return f, &report.Training{Report: l.result.Report, LeftOut: l.leftOut}, err
	})
}

// newSpace installs a space with the model that prepare brings, and gives all items their codes there. It has
// the results of Train.
func (c Collection) newSpace(ctx context.Context, progress event.Progress, unbuilt bool,
	prepare func(ctx context.Context, v *state.View, cv *state.CollectionView) (*NewSpace, *report.Training,
		error)) (space uint32, t *report.Training, err error) {
	// The steps: complete an unfinished reindexing; prepare on a view and install the space, in one commit;
	// build it, block by block. Nothing is stored before the install. After it any failure drops the space,
	// and a crash leaves it for Resume or the next training (TestTrainSettlesWhatAnotherProcessLeft of db).
	ctx, stop := c.untilDropped(ctx)
	defer stop()
	if err := c.completeLeft(ctx); err != nil {
		return 0, nil, c.dropped(ctx, err)
	}
	sp, err := c.Install(ctx, true, func(v *state.View, cv *state.CollectionView) (f *NewSpace, err error) {
		f, t, err = prepare(ctx, v, cv)
		return f, err
	})
	if err != nil {
		return 0, nil, c.dropped(ctx, err)
	}
	if unbuilt {
		t.Space, t.Revision = report.Space(sp.ID), sp.Revision
		return sp.ID, t, nil
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
	t.Space, t.Revision, t.Items, t.Active = report.Space(built.Space), built.Revision, built.Items,
		built.Active
	seconds, commit := t.Report.Seconds, b.committing.Seconds()
	seconds["encode"], seconds["commit"] = time.Since(start).Seconds()-commit, commit
	seconds["total"] += time.Since(start).Seconds()
	return sp.ID, t, nil
}

// completeLeft completes a reindexing that an earlier process has left unfinished: a
// collection builds one space at a time. It leaves an unfinished training alone, as
// createSpace drops that in the commit that installs the new space.
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
	set     *trainingSet  // its training items
	result  *fit.Result   // model, statistics, report
	space   *spaces.Space // the space of the model; without a number until it is installed
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
func TrainOn(ctx context.Context, v *state.View, cv *state.CollectionView,
	opt TrainOptions) (*learned, error) {
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
		return nil, l.set.err // reading has failed; the items are valid
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Invalid("collection %q: %w", cv.Name, err)
	}
	l.space = spaces.New(spaces.SpaceDescriptor{Bits: l.result.Model.Bits()}, l.result.Model,
		l.set.modalities)
	return l, nil
}

// NewSpace returns a new space with the model. Training rows have a lesson: their share of the statistics
// (fit.Result.Lesson). All other rows with a modality of the model are pending. NewSpace reads the record of
// each training row.
func (l *learned) NewSpace(ctx context.Context, v *state.View, cv *state.CollectionView,
	activate bool) (*NewSpace, error) {
	f := &NewSpace{space: l.space, activate: activate}
	var err error
	if f.model, err = l.result.Model.MarshalBinary(); err != nil {
		return nil, err
	}
	if !l.space.HasStatistics() { // no row teaches, and none is pending
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

// A training reads its items a few times, and never holds all of them. The view that it reads does
// not change meanwhile, so all passes see the same items in the same order.

// trainingSet is the sum.Source of a training: items of a view, in the order of rows. It belongs to the
// goroutine that trains. The caller keeps the view for as long.
type trainingSet struct {
	v     *state.View
	cv    *state.CollectionView // the collection in v
	limit int                   // train on the first so many of the items that choose finds; 0: on all

	// choose sets these, once, before the first pass.
	modalities []int           // positions in the collection of the modalities to train with, ascending
	rows       *roaring.Bitmap // the rows to train on

	err error // the error of the store that ended the last pass; nil: any error is of the model
}

// choose finds the rows to learn from by a method, and the modalities that any of them has. It returns the
// names of the other modalities. Methods that learn from labels take the labelled rows, and read all item
// records for that, without vectors; others take all rows with a vector. ErrInvalid: no row has a vector.
func (s *trainingSet) choose(ctx context.Context, method model.Method) (leftOut []string, err error) {
	what := "labelled item"
	if !method.LabelFree() {
		if s.rows, err = s.labelled(ctx); err != nil {
			return nil, err
		}
	} else {
		what = "item"
		all := make([]int, len(s.cv.Modalities))
		for t := range all {
			all[t] = t
		}
		s.rows = record.UnionOf(s.cv.Presence, all)
		if s.limit > 0 {
			s.rows = firstRows(s.rows, s.limit)
		}
	}
	for t, m := range s.cv.Modalities {
		// If no item is labelled it keeps all modalities, and fit.Train says that labels are missing.
		if s.rows.IsEmpty() && what == "labelled item" || s.cv.Presence[t].Intersects(s.rows) {
			s.modalities = append(s.modalities, t)
		} else {
			leftOut = append(leftOut, m.Name)
		}
	}
	switch {
	case len(s.modalities) == 0 && what == "item":
		return nil, fault.Invalid("train collection %q: %w: none has a vector of any modality", s.cv.Name,
			fit.ErrNoItems)
	case len(s.modalities) == 0:
		return nil, fault.Invalid(
			"train collection %q: no labelled item has a vector of any modality: label items that have one, or learn without labels by another method", s.cv.Name)
	}
	return leftOut, nil
}

// labelled returns the rows with labels, or the first ones up to the limit.
func (s *trainingSet) labelled(ctx context.Context) (*roaring.Bitmap, error) {
	labelled := roaring.New()
	err := record.ForEach(s.v.Snap, codec.CollectionKey(codec.KindItem, s.cv.ID),
		func(key, value []byte) error {
			row := codec.LastNumber(key)
			if row%search.BetweenLooks == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			rec, err := codec.DecodeItemRecord(value)
			if err != nil {
				return fault.Corrupt(err, "item in row %d", row)
			}
			if len(rec.Labels) > 0 {
				labelled.Add(row)
			}
			// The lowest rows, as in Examples, which stops after as many.
			if s.limit > 0 && labelled.GetCardinality() == uint64(s.limit) {
				return record.ErrStopped
			}
			return nil
		})
	if errors.Is(err, record.ErrStopped) {
		err = nil
	}
	return labelled, err
}

// Examples yields the items, as sum.Source asks: one vector for each of modalities,
// and labels by id. Each call is a pass over the snapshot. An example is valid until the next
// one. An error of the store ends the pass and is kept in err.
//
// It ignores ctx: fit.Train looks at that after each block of examples.
func (s *trainingSet) Examples(ctx context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		n := uint64(0)
		chosen := make([]model.Vector, len(s.modalities))
		err := record.ForEachItem(s.v.Snap, s.cv.Descriptor, 0,
			func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
				if !s.rows.Contains(row) {
					return nil
				}
				for i, t := range s.modalities {
					chosen[i] = vectors[t]
				}
				if !yield(model.Example{Vectors: chosen, Labels: rec.Labels}, nil) {
					return record.ErrStopped
				}
				if n++; n == s.rows.GetCardinality() {
					return record.ErrStopped
				}
				return nil
			})
		if err != nil && !errors.Is(err, record.ErrStopped) {
			s.err = err
			yield(model.Example{}, err)
		}
	}
}

// Trainings and reindexings estimate how much they will write before they begin, so that none
// fails on a full disk after an hour. The estimates are of uncompressed bytes.

// trainingBytes estimates the bytes that a training stores: the model, its statistics, and the
// lessons and codes of all items. It returns 0 for impossible options, which fit.Train
// refuses.
func trainingBytes(cv *state.CollectionView, opt TrainOptions) int64 {
	bits := cmp.Or(opt.Bits, fit.DefaultBits)
	if codec.CheckBits(bits) != nil || opt.Anchors < 0 {
		return 0
	}
	sum := 0.0
	if opt.Method.LabelFree() {
		bits = cmp.Or(opt.Bits, fit.DefaultLabelFreeBits)
		for _, m := range cv.Modalities {
			sum += 8 * float64(bits+1) * float64(m.Dim)
		}
		return newSpaceBytes(sum, cv.Items, 0, state.CodesBytes(bits, true))
	}
	for _, m := range cv.Modalities {
		// k features of a modality: one an anchor. A training takes no more anchors than items.
		k := float64(min(cmp.Or(opt.Anchors, fit.DefaultAnchorsOf(cv.Items)), cv.Items))
		// k anchors in float32; half of the symmetric A, B and P in float64.
		sum += 4*k*float64(m.Dim) + 4*k*k + 2*8*k*float64(bits)
		// Half of the sums of pairs of labels, where there are no more labels than bits.
		c := float64(min(len(cv.Names), bits))
		sum += 4 * c * c
	}
	return newSpaceBytes(sum, cv.Items, codec.Bytes(bits)+4, state.CodesBytes(bits, true))
}

// newSpaceBytes estimates the bytes of a new space. model is the size of its model and statistics; lesson and
// codes are bytes an item. The new space is a commit, which is written to the log and to a table; codes go
// into tables only.
func newSpaceBytes(model float64, items, lesson, codes int) int64 {
	return clampedBytes(store.WrittenTwice*(model+float64(items)*float64(lesson)) +
		float64(items)*float64(codes))
}

// reindexBytes estimates the bytes that a reindexing of the space of cv stores: the new space has a model,
// statistics, lessons and codes as large as the old one. It returns 0 without a model.
func reindexBytes(cv *state.CollectionView) int64 {
	sp := cv.Space
	if sp == nil || sp.Learned == nil {
		return 0 // there is nothing to reindex
	}
	lesson := 0
	if sp.HasStatistics() {
		lesson = codec.Bytes(sp.Bits) + 4
	}
	return newSpaceBytes(float64(sp.Model.Bytes)+float64(sp.Statistics.Bytes), cv.Items, lesson,
		state.CodesBytes(sp.Bits, true))
}

// clampedBytes converts an estimate to bytes, far below overflow.
func clampedBytes(x float64) int64 { return int64(min(x, math.MaxInt64/4)) }

// RoomToTrain returns an error, ErrDiskFull as a rule, if the disk has no room for the results
// of a training with these options.
func (c Collection) RoomToTrain(opt TrainOptions) error {
	return c.Read(func(_ *state.View, cv *state.CollectionView) error {
		return c.DB.Engine.Admit(trainingBytes(cv, opt), false)
	})
}
