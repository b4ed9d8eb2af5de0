package learn

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// How an update chooses the rows that teach, and whether rows without labels do.

// learn lets the pending rows teach, maxUpdateRows labelled and as many others at most. Rows
// with known labels teach these. With TeacherAuto the others are tried on a copy
// (model.Guard); once refused, they are tried again only when they have doubled. Many tries
// with nearly the same rows would adopt them by luck at last, and each costs as much as
// learning from them. It commits nothing.
func (u *updater) learn(ctx context.Context, teacher Teacher) error {
	// The order: measure drift on rows that have not taught yet; let labelled rows teach, but for
	// those held back; try the others on a copy, judged by the rows held back; let these teach;
	// last, if adopted, let the others teach. Each step changes the learner in memory alone.
	u.teacherName = teacher.String()
	u.outliers = newOutliers(u.cv.Space.Learned, u.l.online.Statistics())
	labelled, unlabelled, err := u.partition(ctx)
	if err != nil {
		return err
	}
	n := int(unlabelled.GetCardinality())
	// Until a teacher lets them teach, all of these wait.
	u.waiting, u.skipped = unlabelled, n
	unlabelled = firstRows(unlabelled, maxUpdateRows)
	waits := teacher == Auto && n < 2*u.l.refused // they were refused, and have not doubled
	tries := n > 0 && (teacher == Modality || teacher == Auto && !waits)
	if waits && n > 0 {
		u.refused = n
		u.reason = fmt.Sprintf("they are tried again when there are %d: %d without labels were refused, now there are %d", 2*u.l.refused, u.l.refused, n)
	}
	if labelled.IsEmpty() && !tries && teacher != Self {
		return nil
	}
	// Drift is of the rows that came. Rows without labels may have waited for long, so it is
	// measured by them only if there are no others.
	came := labelled
	if came.IsEmpty() {
		came = unlabelled
	}
	if u.drift, err = DriftOf(ctx, u.v, u.cv, came); err != nil {
		return err
	}
	u.total = int(labelled.GetCardinality())
	// With Auto the total is known only after the trial.
	if teacher == Self || tries && teacher != Auto {
		u.total += n
	}
	// Rows that have not taught yet are the best judges: hold some back, and let them teach
	// after the trial.
	held := roaring.New()
	if tries {
		held = evenly(labelled, heldItems)
		labelled = roaring.AndNot(labelled, held)
	}
	if err := u.teach(ctx, labelled, model.TeacherLabels, 0); err != nil {
		return err
	}
	var lead int
	adopt := false
	if tries {
		if lead, adopt, err = u.try(ctx, held, unlabelled, teacher); err != nil {
			return err
		}
	}
	if err := u.teach(ctx, held, model.TeacherLabels, 0); err != nil {
		return err
	}
	switch {
	case teacher == Self:
		u.waiting, u.skipped = roaring.New(), 0
		return u.teach(ctx, unlabelled, model.TeacherSelf, 0)
	case adopt:
		u.total = max(u.total, u.done+int(unlabelled.GetCardinality()))
		u.waiting, u.skipped, u.l.refused = roaring.New(), 0, 0
		return u.teach(ctx, unlabelled, model.TeacherModality, lead)
	case tries:
		u.refused, u.l.refused = n, n
	}
	return nil // rows without labels stay pending
}

const (
	// maxUpdateRows is the most labelled rows, and the most others, that one update looks at.
	// It bounds the commit.
	maxUpdateRows = 1 << 20
	// ManyPending is the number of pending rows above which partition reads the row sets of
	// labels instead of the record of each row. Rows that are refused stay pending, so that
	// there may be very many.
	ManyPending = 1 << 14
)

// partition returns the pending rows with a label that the model knows, maxUpdateRows at most,
// and all pending rows without one.
func (u *updater) partition(ctx context.Context) (labelled, unlabelled *roaring.Bitmap, err error) {
	pending, m := u.cv.Pending, u.cv.Space.Learned
	if pending.GetCardinality() > ManyPending {
		// One pass over the sets of the known labels costs less than a read for each pending row.
		known := roaring.New()
		prefix := append(codec.CollectionKey(codec.KindRows, u.cv.ID), codec.SetLabel)
		err = record.ForEach(u.v.Snap, prefix, func(key, value []byte) error {
			if _, id, container := codec.RowsKeyParts(key); m.Knows([]uint32{id}) {
				return record.AddRows(known, key, value, container)
			}
			return ctx.Err()
		})
		labelled = roaring.And(pending, known)
		return firstRows(labelled, maxUpdateRows), roaring.AndNot(pending, known), err
	}
	labelled, unlabelled = roaring.New(), roaring.New()
	for it := pending.Iterator(); it.HasNext() && err == nil; {
		row := it.Next()
		rec, rerr := record.ReadItem(u.v.Snap, u.cv.ID, row)
		switch {
		case rerr != nil:
			return nil, nil, rerr
		case m.Knows(rec.Labels):
			labelled.Add(row)
		default:
			unlabelled.Add(row)
		}
		err = ctx.Err()
	}
	return labelled, unlabelled, err
}

const (
	// heldItems is the most labelled items that are held back, to judge rows without labels.
	heldItems = 200
	// triedItems is the most rows without labels that teach the copy in a trial.
	triedItems = 10_000
)

// try decides whether rows without labels are to teach, and finds the modality whose
// projections give them codes: lead, a position in the model. held are labelled rows that have
// not taught yet. For TeacherModality it only finds lead. It sets u.lead and u.reason.
func (u *updater) try(ctx context.Context, held, unlabelled *roaring.Bitmap, teacher Teacher) (lead int, adopt bool, err error) {
	// The guard learns on a copy of the statistics. The learner itself learns only what is adopted.
	guard, err := u.guard(ctx, held)
	if err != nil {
		return 0, false, err
	}
	lead = guard.Lead()
	u.lead = u.cv.Modalities[u.cv.Space.Positions[lead]].Name
	if teacher == Modality {
		return lead, true, nil
	}
	tried, done := evenly(unlabelled, triedItems), 0
	err = u.eachItem(ctx, tried, func(_ []uint32, items []model.Example) error {
		done += len(items)
		u.report("try", done, int(tried.GetCardinality()))
		return u.learning(guard.Learn(ctx, items))
	})
	if err != nil {
		return 0, false, err
	}
	verdict, err := guard.Verdict()
	u.reason = verdict.Reason
	return lead, verdict.Adopt, u.learning(err)
}

// learning says, in an error of the model, which space was being updated; nil stays nil.
func (u *updater) learning(err error) error {
	return fault.Annotate(err, "update space %d of collection %q", u.cv.Space.ID, u.cv.Name)
}

// eachItem calls f with rows of the view, ascending, and their items, model.MaxLesson at a
// time. f may keep both. Outliers are added to u.left instead.
func (u *updater) eachItem(ctx context.Context, set *roaring.Bitmap, f func(rows []uint32, items []model.Example) error) error {
	features, err := record.NewFeatureReader(u.v.Snap, u.cv.Descriptor, 0)
	if err != nil {
		return err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(u.cv.Modalities))
	var rows []uint32
	var items []model.Example
	flush := func() error {
		if err := ctx.Err(); err != nil || len(rows) == 0 {
			return err
		}
		err := f(rows, items)
		rows, items = nil, nil
		return err
	}
	for it := set.Iterator(); it.HasNext(); {
		row := it.Next()
		rec, err := record.ReadItem(u.v.Snap, u.cv.ID, row)
		if err != nil {
			return err
		}
		if err := features.Seek(vectors, row); err != nil {
			return err
		}
		item := u.cv.Space.Example(vectors, rec.Labels)
		long, err := u.outliers.has(item)
		if err != nil {
			return u.learning(err)
		}
		if long {
			u.left.Add(row)
			continue
		}
		// Seek fills vectors again for the next row.
		for t := range item.Vectors {
			item.Vectors[t] = record.CloneVector(item.Vectors[t])
		}
		if rows, items = append(rows, row), append(items, item); len(rows) == model.MaxLesson {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// teach lets rows teach the learner, and keeps their lessons for commit. lead is the modality
// that teaches with model.TeacherModality, as a position in the model.
func (u *updater) teach(ctx context.Context, set *roaring.Bitmap, teacher model.Teacher, lead int) error {
	return u.eachItem(ctx, set, func(rows []uint32, items []model.Example) error {
		done, err := u.l.online.Learn(ctx, items, teacher, lead)
		if err != nil {
			return u.learning(err)
		}
		for i, row := range rows {
			// A row without a lesson stays pending, for another teacher.
			if l := done.Lessons[i]; !l.Empty() {
				u.rows, u.lessons = append(u.rows, row), append(u.lessons, u.cv.Space.Taught(l))
			}
		}
		u.labelled += done.Labelled
		u.unlabelled += done.Unlabelled
		u.skipped += done.Skipped
		u.done += len(rows)
		u.report("learn", u.done, u.total)
		return nil
	})
}

// report calls progress, if there is one.
func (u *updater) report(stage string, done, total int) {
	if u.progress != nil {
		u.progress(stage, int64(done), int64(total))
	}
}

// guard returns a model.Guard that judges by labelled items: the pending rows given, which have
// not taught yet, and if these are fewer than heldItems, items that have. The guard forgets the
// lessons of the latter.
func (u *updater) guard(ctx context.Context, pending *roaring.Bitmap) (*model.Guard, error) {
	var held []model.Example
	err := u.eachItem(ctx, pending, func(_ []uint32, items []model.Example) error {
		held = append(held, items...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	came, lessons := len(held), make([]model.Lesson, len(held))
	// Take at most half of the items that have taught: the guard forgets them, and
	// projections that have learned from nothing show nothing.
	taught := int(u.cv.Numbers.Taught)
	if room := min(heldItems-len(held), taught/2); room > 0 {
		more, learned, err := u.sample(ctx, max(1, taught/(2*room))) // twice as many as needed: some have no labels
		if err != nil {
			return nil, err
		}
		n := len(more)
		for i := range min(room, n) {
			at := i * n / min(room, n)
			held, lessons = append(held, more[at]), append(lessons, learned[at])
		}
	}
	g, err := u.l.online.Guard(ctx, held, lessons)
	var singular *model.SingularError
	if errors.As(err, &singular) && len(held) > came {
		// The items to forget had a vector far longer than all others. Without it the sums
		// are rounding, and A is singular. Judge by the others.
		g, err = u.l.online.Guard(ctx, held[:came], lessons[:came])
	}
	return g, u.learning(err)
}

// sample returns every step-th of the items that have taught, those with labels that the model
// knows, and their lessons.
func (u *updater) sample(ctx context.Context, step int) (held []model.Example, lessons []model.Lesson, err error) {
	at := 0
	err = u.cv.Space.ForEachLesson(ctx, u.v.Snap, u.cv.Descriptor, func(codec.Lesson) bool {
		at++
		return at%step == 0
	}, func(rows []uint32, items []model.Example, taught []model.Lesson) error {
		for i, row := range rows {
			rec, err := record.ReadItem(u.v.Snap, u.cv.ID, row)
			if err != nil {
				return err
			}
			if u.cv.Space.Learned.Knows(rec.Labels) {
				items[i].Labels = rec.Labels
				held, lessons = append(held, items[i]), append(lessons, taught[i])
			}
		}
		return nil
	})
	return held, lessons, err
}
