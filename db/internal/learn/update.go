package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// An update has three parts, each with commits of its own: grow labels, recode rows, learn. Its commits stay
// if a later part fails. So an interrupted update only costs time, and the next one goes on.

// adoption returns the teachers of the items that have taught in this update.
func (u *updater) adoption() (a report.Adoption) {
	if u.labelled > 0 {
		a.Labelled = Labels.String()
	}
	switch {
	case u.unlabelled == 0:
	case u.lead == "":
		a.Unlabelled = Self.String()
	default:
		a.Unlabelled = Modality.String()
	}
	return a
}

// UpdateEvent returns the fields of events about an update; u may be nil.
func UpdateEvent(u *report.Update) event.Event {
	if u == nil {
		return event.Event{}
	}
	return event.Event{Space: uint32(u.Space), Revision: u.Revision, Items: int64(u.Items),
		Attrs: []slog.Attr{
			slog.Int("labelled", u.Labelled), slog.Int("unlabelled", u.Unlabelled),
			slog.Int("refused", u.Refused), slog.Bool("revised", u.Revised),
		}}
}

// UpdateOptions are the options of Collection.Update, as db.UpdateOptions has them.
type UpdateOptions struct {
	Space      uint32 // 0: the active space
	Teacher    Teacher
	GrowLabels bool           // give labels that the model does not know a direction first
	Progress   event.Progress // called in the goroutine of the caller; nil: none
}

// Update lets the pending rows of a space teach, and commits a revision if any row has taught or been
// forgotten: the online step of FDDH (Liu, Wang, Cheung 2021, eqs. 22-24). Before that it grows labels, if
// opt says so, and recodes rows that wait for it; each has commits of its own, which stay after a later
// error. db.Collection.Update has cost, memory and errors. Updates of one space wait for each other.
func (c Collection) Update(ctx context.Context, opt UpdateOptions) (*report.Update, error) {
	start := time.Now()
	out := &report.Update{Teacher: opt.Teacher.String()}
	if opt.Space == 0 { // all steps take this space, even if another one is activated meanwhile
		err := c.Read(func(_ *state.View, cv *state.CollectionView) error {
			if cv.Space != nil {
				opt.Space = cv.Space.ID
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if opt.GrowLabels {
		if err := c.GrowLabels(ctx, opt.Space, out); err != nil {
			return nil, err
		}
	}
	// Recode first: these rows become pending, and teach their new codes in this update.
	recoded, err := c.recode(ctx, opt.Space)
	if err != nil {
		return nil, err
	}
	out.Recoded = recoded
	err = c.revise(ctx, opt.Space, func(u *updater) error {
		out.Space, out.Revision = report.Space(u.cv.Space.ID), u.cv.Space.Revision
		u.progress = opt.Progress
		if err := u.learn(ctx, opt.Teacher); err != nil {
			return err
		}
		if n := int(u.left.GetCardinality()); n > 0 {
			u.skipped += n - int(u.left.AndCardinality(u.waiting))
			u.reason = strings.TrimPrefix(u.reason+"; "+tooLong(n), "; ")
		}
		err := u.commit(ctx)
		out.Revision, out.Revised = u.revision, out.Revised || u.revision != u.cv.Space.Revision
		out.Labelled, out.Unlabelled, out.Skipped, out.Refused = u.labelled, u.unlabelled, u.skipped,
			u.refused
		out.Forgotten += u.forgotten // GrowLabels has counted the items that its revision took out
		out.Items = u.labelled + u.unlabelled
		out.Adopted, out.Lead, out.Reason = u.adoption(), u.lead, u.reason
		out.Drift = u.drift
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// An updater makes one revision of a space, in the goroutine of the caller. It lives for one call of revise,
// which owns v and l.
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
	done     int            // items that have had their turn
	total    int            // an estimate of their final number

	// More of the descriptor of the revision.
	teacherName string
	lead        string       // the modality that gives codes to items without labels, or was tried; "": none
	reason      string       // why items without labels were adopted or refused, as text
	parent      uint32       // the revision that this one is made from
	drift       report.Drift // of the new items, before they taught; nil: not measured

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

// insteadOfUpdate returns advice for a space without statistics, which cannot be updated: other spaces of the
// collection may have some.
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
	return "train again when drift says that items have changed, or when items have got labels"
}

// beginRevision returns the view to learn from, which the caller releases, and the number of the space. From
// that view on the committer records changed rows. It waits for a running update of the space. Errors:
// ErrInvalid, ErrNoModel, ErrNotFound, and ErrBusy for a space that is being built.
func (c Collection) beginRevision(ctx context.Context, space uint32) (*state.View, uint32, error) {
	var v *state.View
	for {
		busy := false
		// Show, so that readers see that Written begins at 0 again.
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
				return fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete",
					fault.ErrBusy, sp.ID, s.Name)
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
		l, err := c.in.turnOf(ctx, spaceKey{c.ID, space})
		if err != nil {
			return nil, 0, err
		}
		l.release()
		// The other updater releases the learner before it sets Changed to nil (revise): wait for that.
		if err := work.SleepUntil(ctx, time.Now().Add(time.Millisecond)); err != nil {
			return nil, 0, err
		}
	}
}

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
	// Drift is about the new rows. Rows without labels may have waited for long, so they count only if there
	// are no others.
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

// maxUpdateRows is the most labelled rows, and the most others, that one update looks at.
// It bounds the commit.
const maxUpdateRows = 1 << 20

// partition returns the pending rows with a label that the model knows, maxUpdateRows at most,
// and all pending rows without one.
func (u *updater) partition(ctx context.Context) (labelled, unlabelled *roaring.Bitmap, err error) {
	pending, m := u.cv.Pending, u.cv.Space.Learned
	if pending.IsEmpty() {
		return roaring.New(), roaring.New(), nil
	}
	// One pass over the sets of the known labels costs less than a read for each pending row: rows that are
	// refused stay pending, so that there may be very many.
	known := roaring.New()
	err = record.ForEach(u.v.Snap, codec.SetPrefix(u.cv.ID, codec.SetLabel), func(key, value []byte) error {
		if _, id, container := codec.RowsKeyParts(key); m.Knows([]uint32{id}) {
			return record.AddRows(known, key, value, container)
		}
		return ctx.Err()
	})
	labelled = roaring.And(pending, known)
	return firstRows(labelled, maxUpdateRows), roaring.AndNot(pending, known), err
}

const (
	// heldItems is the most labelled items that are held back, to judge rows without labels.
	heldItems = 200
	// triedItems is the most rows without labels that teach the copy in a trial.
	triedItems = 10_000
)

// try decides whether rows without labels teach, and finds the modality whose projections give them codes:
// lead, a position in the model. held are labelled rows that have not taught yet. For TeacherModality it only
// finds lead. It sets u.lead and u.reason.
func (u *updater) try(ctx context.Context, held, unlabelled *roaring.Bitmap,
	teacher Teacher) (lead int, adopt bool, err error) {
	// The guard learns on a copy of the statistics. The learner itself learns only from adopted items.
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
func (u *updater) eachItem(ctx context.Context, set *roaring.Bitmap,
	f func(rows []uint32, items []model.Example) error) error {
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
	// Take at most half of the items that have taught: the guard forgets them, and projections without any
	// lessons prove nothing.
	taught := int(u.cv.Numbers.Taught)
	if room := min(heldItems-len(held), taught/2); room > 0 {
		// twice as many as needed: some have no labels
		more, learned, err := u.sample(ctx, max(1, taught/(2*room)))
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
func (u *updater) sample(ctx context.Context,
	step int) (held []model.Example, lessons []model.Lesson, err error) {
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

// The commit of an update.

// commit stores a revision with the present projections of the learner, the lessons of the rows that have
// taught it, and the statistics if a checkpoint is due. If nothing has taught or been forgotten, and no
// checkpoint was requested, there is no commit. The lesson of a row that has changed since the view is
// retracted in this very commit. Errors: ErrBusy, ErrNotFound, ErrFull; the caller then has to forget the
// learner.
func (u *updater) commit(ctx context.Context) error {
	m, err := u.imported, error(nil)
	if m == nil {
		if len(u.rows) == 0 && u.forgotten == 0 && !u.checkpoint {
			return nil
		}
		if m, err = u.l.online.Revision(); err != nil {
			return u.learning(err)
		}
	}
	next := u.cv.Space.Revised(cmp.Or(u.number, u.cv.Space.Revision+1), m)
	projections, err := m.MarshalRevision(u.cv.Space.Trained)
	if err != nil {
		return u.learning(err)
	}
	d := u.descriptor(next.Revision, projections)
	var statistics []byte // nil: no checkpoint is due
	u.l.ahead += len(u.rows)
	if u.checkpoint || u.l.ahead >= checkpointItems && !u.l.shrunk() {
		if statistics, err = u.l.online.Statistics().MarshalBinary(); err != nil {
			return u.learning(err)
		}
	}
	// The latest numbers, spaces.Kept of them, all exist: skipped numbers are stored as the same revision.
	var passed []*spaces.RevisionDescriptor
	for n := max(int64(u.cv.Space.Revision)+1, int64(next.Revision)-(spaces.Kept-1)); n < int64(
		next.Revision); n++ {
		same := *d
		same.Revision = uint32(n)
		passed = append(passed, &same)
	}
	bytes := (1+len(passed))*len(projections) + len(statistics)
	for _, t := range u.lessons {
		bytes += 10 + len(t.Codes) + 5*len(t.Labels)
	}
	err = u.inSpace(ctx, bytes, func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error {
		if next.Revision > codec.MaxRevision {
			return fmt.Errorf("%w: revisions of space %d", fault.ErrFull, sp.ID)
		}
		// Everything that may fail comes first: a change in memory would stay after an error.
		retractions, err := u.retractions(sp, next.Revision)
		if err != nil {
			return err
		}
		recode, err := carriers(tx.Committer.Reader(), s.ID, u.recode)
		if err != nil {
			return err
		}
		for _, d := range append(passed, d) {
			if err := tx.WriteRevision(sp, d, projections); err != nil {
				return err
			}
		}
		if statistics != nil {
			if err := tx.WriteCheckpoint(s, sp, next, statistics, u.l.retracted); err != nil {
				return err
			}
			sp.Numbers.Checkpoint = uint64(next.Revision)
		}
		for i, row := range u.rows {
			// If the row has changed, it has taught its contents of the view. The statistics contain that, so
			// the lesson is retracted at once, and never stored. TestWritesDuringAnUpdate of db.
			if retractions[row] == nil {
				tx.Learn(sp, row, codec.Lesson{Revision: next.Revision, Taught: u.lessons[i]}, false)
				continue
			}
			if err := tx.QueueRetraction(sp, retractions[row]); err != nil {
				return err
			}
		}
		notPending(tx, sp, u.rows)
		for it := recode.Iterator(); it.HasNext(); {
			tx.SetOnline(sp, codec.SetRecode, it.Next(), true)
		}
		// Last: the commit is for the revision of the view up to here (inSpace).
		sp.Revise(next)
		tx.Committer.Touch(s)
		return nil
	})
	if err != nil {
		return err
	}
	u.revision = next.Revision
	// The learner follows only a commit that is durable. If the commit fails, revise forgets it.
	u.l.revision, u.l.forgotten = next.Revision, 0
	if statistics != nil {
		u.l.ahead = 0
	}
	return nil
}

// inSpace runs f in the committer, alone in its commit of about so many bytes, with the space
// that is being updated. ErrBusy: the space has got another revision since the view.
func (u *updater) inSpace(ctx context.Context, bytes int,
	f func(tx *state.Tx, s *state.CollectionState, sp *state.SpaceState) error) error {
	return u.c.Do(ctx, bytes, func(tx *state.Tx, s *state.CollectionState) error {
		sp := s.SpaceByID(u.cv.Space.ID)
		if sp == nil {
			return fault.NotFound("space %d of collection %q, which was being updated", u.cv.Space.ID, s.Name)
		}
		if sp.Space != u.cv.Space {
			return fmt.Errorf("%w: space %d of collection %q has got another revision meanwhile",
				fault.ErrBusy, sp.ID, s.Name)
		}
		return f(tx, s, sp)
	})
}

// retractions returns, by row, the lessons of this update whose rows have changed since the
// view, with the features of the view: the statistics have these. It runs in the committer.
// ErrBusy: they are too large for one batch (record.MaxBatchBytes).
func (u *updater) retractions(sp *state.SpaceState, revision uint32) (map[uint32]*codec.Retraction, error) {
	out := map[uint32]*codec.Retraction{}
	bytes := 0
	for i, row := range u.rows {
		if !sp.Changed.Contains(row) {
			continue
		}
		if bytes > record.MaxBatchBytes {
			return nil, fmt.Errorf("%w: too much of what taught space %d has been overwritten meanwhile: try again", fault.ErrBusy, sp.ID)
		}
		// Of the revision that this commit makes: the statistics with that revision have the lesson.
		l := codec.Lesson{Revision: revision, Taught: u.lessons[i]}
		d, err := record.Retraction(u.v.Snap, u.cv.Descriptor, sp.Positions, row, l)
		if err != nil {
			return nil, err
		}
		out[row] = d
		bytes += d.Bytes()
	}
	return out, nil
}

// notPending takes rows out of the pending ones, except rows that have changed since the view: they have to
// teach their present contents. It runs in the committer.
func notPending(tx *state.Tx, sp *state.SpaceState, rows []uint32) {
	for _, row := range rows {
		if !sp.Changed.Contains(row) {
			tx.SetOnline(sp, codec.SetPending, row, false)
		}
	}
}

// descriptor returns the descriptor of a revision with this number. projections is the
// binary form of its model.
func (u *updater) descriptor(revision uint32, projections []byte) *spaces.RevisionDescriptor {
	return &spaces.RevisionDescriptor{Model: record.ChunksOf(projections), Retracted: u.l.retracted,
		RevisionInfo: report.RevisionInfo{
			Revision: revision, Parent: u.parent, Created: spaces.Now(),
			Teacher: u.teacherName, Lead: u.lead, Reason: u.reason,
			Items: u.labelled + u.unlabelled, Labelled: u.labelled, Unlabelled: u.unlabelled,
			Forgotten: u.forgotten,
			Drift:     u.drift,
		}}
}
