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

// This file lets items teach: which, who of them, and whether those without labels are to.

// learn lets the pending items teach. What those without labels would teach, once
// refused, is tried again only when they have doubled: of many tries with nearly the
// same items one would be adopted by luck, and each takes as long as all of them.
func (u *updater) learn(ctx context.Context, teacher Teacher) error {
	u.teacherName = teacher.String()
	u.outliers = newOutliers(u.cv.Space.Learned, u.l.online.Statistics())
	labelled, unlabelled, err := u.partition(ctx)
	if err != nil {
		return err
	}
	n := int(unlabelled.GetCardinality())
	u.waiting, u.skipped = unlabelled, n
	unlabelled = firstRows(unlabelled, maxUpdateRows)
	waits := teacher == Auto && n < 2*u.l.refused
	tries := n > 0 && (teacher == Modality || teacher == Auto && !waits)
	if waits && n > 0 {
		u.refused = n
		u.reason = fmt.Sprintf("they are tried again when there are %d: %d without labels were refused, now there are %d", 2*u.l.refused, u.l.refused, n)
	}
	if labelled.IsEmpty() && !tries && teacher != Self {
		return nil
	}
	// Of what came: those without labels may have been there for long.
	came := labelled
	if came.IsEmpty() {
		came = unlabelled
	}
	if u.drift, err = MeasureDrift(ctx, u.v, u.cv, came); err != nil {
		return err
	}
	u.total = int(labelled.GetCardinality())
	if teacher == Self || tries && teacher != Auto {
		u.total += n
	}
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
	return nil // those without labels stay pending
}

const (
	// maxUpdateRows bounds how many labelled and how many other items one update looks
	// at, and so its commit.
	maxUpdateRows = 1 << 20
	// ManyPending is from how many pending rows on those with labels are found by the
	// sets of labels, and not by their records: those that are refused stay pending.
	ManyPending = 1 << 14
)

// partition returns the pending rows with labels that the model knows, and the others.
func (u *updater) partition(ctx context.Context) (labelled, unlabelled *roaring.Bitmap, err error) {
	pending, m := u.cv.Pending, u.cv.Space.Learned
	if pending.GetCardinality() > ManyPending {
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
	// heldItems is up to how many labelled items are held back to judge by what others
	// would teach.
	heldItems = 200
	// triedItems is with how many of these that is tried.
	triedItems = 10_000
)

// try finds the modality that is to teach those without labels, and says whether to let
// it.
func (u *updater) try(ctx context.Context, held, unlabelled *roaring.Bitmap, teacher Teacher) (lead int, adopt bool, err error) {
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

// learning annotates an error of the model.
func (u *updater) learning(err error) error {
	return fault.Annotate(err, "update space %d of collection %q", u.cv.Space.ID, u.cv.Name)
}

// eachItem calls f with rows and their items, model.MaxLesson at a time.
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

// teach lets rows teach, and keeps what.
func (u *updater) teach(ctx context.Context, set *roaring.Bitmap, teacher model.Teacher, lead int) error {
	return u.eachItem(ctx, set, func(rows []uint32, items []model.Example) error {
		done, err := u.l.online.Learn(ctx, items, teacher, lead)
		if err != nil {
			return u.learning(err)
		}
		for i, row := range rows {
			if codes := appendLesson(nil, done.Lessons[i], u.cv.Space.Bits); codes != nil {
				u.seen.Add(row) // others stay pending, for another teacher
				u.rows, u.lessons = append(u.rows, row), append(u.lessons, codes)
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

// report tells how far the update has got.
func (u *updater) report(stage string, done, total int) {
	if u.progress != nil {
		u.progress(stage, int64(done), int64(total))
	}
}

// guard returns a guard that holds back labelled items: those given, which have not
// taught yet, and, where they are few, others that have.
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
	// At most half of those that have taught, as they are taken out to judge by: what
	// has nothing left to go by judges nothing.
	taught := int(u.cv.Numbers.Taught)
	if room := min(heldItems-len(held), taught/2); room > 0 {
		more, learned, err := u.sample(ctx, max(1, taught/(2*room))) // some may have no labels
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
		// Without a vector that was far longer than all others, rounding is what remains.
		g, err = u.l.online.Guard(ctx, held[:came], lessons[:came])
	}
	return g, u.learning(err)
}

// sample returns every step-th of the items that have taught, if it has labels that the
// model knows, and what.
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
