package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// UpdateOptions say what an update is to do. The zero value updates the active space
// with TeacherAuto.
type UpdateOptions struct {
	Space   uint32 // 0: the active one, or that of Collection.InSpace
	Teacher Teacher

	// GrowLabels gives labels that training has never seen a direction in the code
	// space first, and the items that carry them another code, by which they then
	// teach. There are as many directions left as bits exceed the labels.
	GrowLabels bool

	// Progress, if not nil, is called from Update's goroutine after each block of items:
	// "try" while those without labels are tried on a copy, "learn" while items teach.
	Progress func(phase string, done, total int)
}

// An Update is what Update did.
type Update struct {
	Space      uint32 `json:"space"`
	Revision   uint32 `json:"revision"` // that is in use now
	Teacher    string `json:"teacher"`
	Items      int    `json:"items"` // that have taught: Labelled and Unlabelled
	Labelled   int    `json:"labelled"`
	Unlabelled int    `json:"unlabelled"`
	Skipped    int    `json:"skipped"`   // that were looked at and have taught nothing
	Forgotten  int    `json:"forgotten"` // that had taught, and have changed or gone since

	// Adopted is true if there is a new revision. Lead is the modality whose
	// projections have taught, or have been tried, for items without labels; Reason
	// says, in words, why these were adopted or not.
	Adopted bool   `json:"adopted"`
	Lead    string `json:"lead,omitempty"`
	Reason  string `json:"reason,omitempty"`

	Grown       []string `json:"grown,omitempty"`        // labels that have got a direction
	NoDirection []string `json:"no_direction,omitempty"` // that have not, as none was left
	Recoded     int      `json:"recoded,omitempty"`      // items that have got another code

	Seconds float64 `json:"seconds"`
}

// Update carries on the learning of a space's projections with the items that have
// been written since it was trained, or last updated: the online step of FDDH (Liu,
// Wang, Cheung 2021, eqs. 22-24). That makes a new revision of the space, in one commit.
// Codes that items have stay as they are and remain comparable; queries, and items
// that are put from then on, are encoded by the new projections. Items that have
// taught and then changed or gone are taken out of what was learned, so that it is, but
// for rounding, what the items that are there now have taught.
//
// Readers and writers go on while it runs, on half of the processors; writers wait for
// the commit. The cost is that of model.Online: with 800 anchors and 128 bits some .3 ms
// an item if there are a hundred or more, and 10 ms or so for the revision. The first
// update of a space after Open reads the statistics, 8 k (k+q) bytes a modality, which
// are then held in memory. It looks at a million pending items at most: call it again
// for more. Updates of one space wait for each other. A space that is
// being built gives ErrBusy, a codes-only collection ErrInvalid, one without a model
// ErrNoModel. With an error or when the context ends early the revision is what it was,
// or was made whole by growing labels.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	if !c.db.guard.enter() {
		return nil, ErrClosed
	}
	defer c.db.guard.leave()
	if !opt.Teacher.known() {
		return nil, invalid("unknown teacher %v", opt.Teacher)
	}
	if err := c.writable(); err != nil {
		return nil, err
	}
	if err := c.loaded(ctx); err != nil {
		return nil, err
	}
	opt.Space = c.spaceOr(opt.Space)
	return c.update(ctx, opt)
}

func (c *Collection) update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	start := time.Now()
	out := &Update{Teacher: opt.Teacher.String()}
	if opt.Space == 0 { // it stays this one, whatever is activated meanwhile
		err := c.read(func(_ *view, cv *collectionView) error {
			if cv.space != nil {
				opt.Space = cv.space.ID
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if opt.GrowLabels {
		if err := c.growLabels(ctx, opt.Space, out); err != nil {
			return nil, err
		}
	}
	recoded, err := c.recode(ctx, opt.Space)
	if err != nil {
		return nil, err
	}
	out.Recoded = recoded
	err = c.revise(ctx, opt.Space, func(u *updater) error {
		out.Space, out.Revision = u.cv.space.ID, u.cv.space.Revision
		u.progress = opt.Progress
		if err := u.learn(ctx, opt.Teacher); err != nil {
			return err
		}
		if n := int(u.left.GetCardinality()); n > 0 {
			u.skipped += n - int(u.left.AndCardinality(u.waiting))
			u.reason = strings.TrimPrefix(u.reason+"; "+tooLong(n), "; ")
		}
		err := u.commit(ctx)
		out.Revision, out.Adopted = u.revision, out.Adopted || u.revision != u.cv.space.Revision
		out.Labelled, out.Unlabelled, out.Skipped, out.Forgotten = u.labelled, u.unlabelled, u.skipped, u.forgotten
		out.Items = u.labelled + u.unlabelled
		out.Lead, out.Reason = u.lead, u.reason
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(start).Seconds()
	return out, nil
}

// An updater makes one revision of a space.
type updater struct {
	c        *Collection
	v        *view
	cv       *collectionView // as seen in the space
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
	forgotten   int
	lead        string
	progress    func(phase string, done, total int)
	done        int // items that have taught, of about total
	total       int
	reason      string
	teacherName string
	parent      uint32   // of the revision
	checkpoint  bool     // store the statistics, however few have taught
	recode      []uint32 // labels whose rows are to get other codes
	drift       *Drift
}

// revise runs f with an updater of a space: it has a view, and the learner is up to
// date with it. Rows that change from then on are recorded. Where f fails, the learner
// forgets what it has learned.
func (c *Collection) revise(ctx context.Context, space uint32, f func(*updater) error) error {
	v, id, err := c.beginRevision(ctx, space)
	if err != nil {
		return err
	}
	defer v.release()
	defer func() {
		// Whatever became of the context.
		_ = c.exclusive(context.WithoutCancel(ctx), true, func(_ *group, s *collectionState) error {
			if sp := s.spaceByID(id); sp != nil {
				sp.changed = nil
			}
			return nil
		})
	}()
	cv, err := v.collection(c.id, c.name)
	if err != nil {
		return err
	}
	if cv, err = cv.inSpace(id); err != nil {
		return err
	}
	l, err := c.db.learner(ctx, v, cv)
	if err != nil {
		return err
	}
	defer l.release()
	u := &updater{
		c: c, v: v, cv: cv, l: l, revision: cv.space.Revision, parent: cv.space.Revision,
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
func (c *Collection) beginRevision(ctx context.Context, space uint32) (*view, uint32, error) {
	var v *view
	for {
		busy := false
		// It is shown that what was written so far is being looked at.
		err := c.db.committer.submit(ctx, &request{quiet: true, shows: true, exclusive: func(g *group) error {
			s := g.c.states[c.id]
			if s == nil {
				return notFound("collection %q", c.name)
			}
			sp := s.spaceByID(space)
			if space == 0 {
				sp = s.active()
			}
			switch {
			case s.codesOnly():
				return invalid("collection %q has no model: its items bring their codes", s.Name)
			case sp == nil && space == 0:
				return fmt.Errorf("%w: collection %q: train it first", ErrNoModel, s.Name)
			case sp == nil:
				return notFound("space %d of collection %q", space, s.Name)
			case sp.numbers.Building:
				return fmt.Errorf("%w: space %d of collection %q is being built: wait until it is complete", ErrBusy, sp.ID, s.Name)
			}
			space = sp.ID
			if busy = sp.changed != nil; busy {
				return nil
			}
			sp.changed, sp.written, s.dirty = roaring.New(), 0, true
			v = c.db.current.Load() // only the committer replaces it
			v.acquire()
			return nil
		}})
		if err != nil || !busy {
			return v, space, err
		}
		// Another update goes on; it has the learner until it has ended.
		l, err := c.db.learners.get(ctx, learnerKey{c.id, space})
		if err != nil {
			return nil, 0, err
		}
		l.release()
		if err := sleepUntil(ctx, time.Now().Add(time.Millisecond)); err != nil {
			return nil, 0, err
		}
	}
}

// learn lets the pending items teach. What those without labels would teach, once
// refused, is tried again only when they have doubled: of many tries with nearly the
// same items one would be adopted by luck, and each takes as long as all of them.
func (u *updater) learn(ctx context.Context, teacher Teacher) error {
	u.teacherName = teacher.String()
	u.outliers = newOutliers(u.cv.space.model, u.l.online.Statistics())
	labelled, unlabelled, err := u.partition(ctx)
	if err != nil {
		return err
	}
	n := int(unlabelled.GetCardinality())
	u.waiting, u.skipped = unlabelled, n
	unlabelled = firstRows(unlabelled, maxUpdateRows)
	waits := teacher == TeacherAuto && n < 2*u.l.refused
	tries := n > 0 && (teacher == TeacherModality || teacher == TeacherAuto && !waits)
	if waits && n > 0 {
		u.reason = fmt.Sprintf("they are tried again when there are %d: %d without labels were refused, now there are %d", 2*u.l.refused, u.l.refused, n)
	}
	if labelled.IsEmpty() && !tries && teacher != TeacherSelf {
		return nil
	}
	// Of what came: those without labels may have been there for long.
	came := labelled
	if came.IsEmpty() {
		came = unlabelled
	}
	if u.drift, err = measureDrift(ctx, u.v, u.cv, came); err != nil {
		return err
	}
	u.total = int(labelled.GetCardinality())
	if teacher == TeacherSelf || tries && teacher != TeacherAuto {
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
	case teacher == TeacherSelf:
		u.waiting, u.skipped = roaring.New(), 0
		return u.teach(ctx, unlabelled, model.TeacherSelf, 0)
	case adopt:
		u.total = max(u.total, u.done+int(unlabelled.GetCardinality()))
		u.waiting, u.skipped, u.l.refused = roaring.New(), 0, 0
		return u.teach(ctx, unlabelled, model.TeacherModality, lead)
	case tries:
		u.l.refused = n
	}
	return nil // those without labels stay pending
}

const (
	// maxUpdateRows bounds how many labelled and how many other items one update looks
	// at, and so its commit.
	maxUpdateRows = 1 << 20
	// manyPending is from how many pending rows on those with labels are found by the
	// sets of labels, and not by their records: those that are refused stay pending.
	manyPending = 1 << 14
)

// partition returns the pending rows with labels that the model knows, and the others.
func (u *updater) partition(ctx context.Context) (labelled, unlabelled *roaring.Bitmap, err error) {
	pending, m := u.cv.pending, u.cv.space.model
	if pending.GetCardinality() > manyPending {
		known := roaring.New()
		prefix := append(codec.CollectionKey(codec.KindRows, u.cv.ID), codec.SetLabel)
		err = forEach(u.v.snap, prefix, func(key, value []byte) error {
			if _, id, container := codec.RowsKeyParts(key); m.Knows([]uint32{id}) {
				return addRows(known, key, value, container)
			}
			return ctx.Err()
		})
		labelled = roaring.And(pending, known)
		return firstRows(labelled, maxUpdateRows), roaring.AndNot(pending, known), err
	}
	labelled, unlabelled = roaring.New(), roaring.New()
	for it := pending.Iterator(); it.HasNext() && err == nil; {
		row := it.Next()
		rec, rerr := readRecord(u.v.snap, u.cv.ID, row)
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

// evenly returns up to limit rows of a set, spread evenly.
func evenly(set *roaring.Bitmap, limit int) *roaring.Bitmap {
	n := int(set.GetCardinality())
	if n <= limit {
		return set.Clone()
	}
	some := roaring.New()
	for i := range limit {
		row, _ := set.Select(uint32(i * n / limit)) // there are so many
		some.Add(row)
	}
	return some
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
	u.lead = u.cv.Modalities[u.cv.space.modalities[lead]].Name
	if teacher == TeacherModality {
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
	return annotate(err, "update space %d of collection %q", u.cv.space.ID, u.cv.Name)
}

// eachItem calls f with rows and their items, model.MaxLesson at a time.
func (u *updater) eachItem(ctx context.Context, set *roaring.Bitmap, f func(rows []uint32, items []model.Example) error) error {
	features, err := newFeatureReader(u.v.snap, u.cv, 0)
	if err != nil {
		return err
	}
	defer features.close()
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
		rec, err := readRecord(u.v.snap, u.cv.ID, row)
		if err != nil {
			return err
		}
		if err := features.seek(vectors, row); err != nil {
			return err
		}
		item := u.cv.space.example(vectors, rec.Labels)
		long, err := u.outliers.has(item)
		if err != nil {
			return u.learning(err)
		}
		if long {
			u.left.Add(row)
			continue
		}
		for t := range item.Vectors {
			item.Vectors[t] = cloneVector(item.Vectors[t])
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
			if codes := appendLesson(nil, done.Lessons[i], u.cv.space.Bits); codes != nil {
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
func (u *updater) report(phase string, done, total int) {
	if u.progress != nil {
		u.progress(phase, done, total)
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
	lessons := make([]model.Lesson, len(held))
	// At most half of those that have taught, as they are taken out to judge by: what
	// has nothing left to go by judges nothing.
	taught := int(u.cv.numbers.Taught)
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
	return g, u.learning(err)
}

// sample returns every step-th of the items that have taught, if it has labels that the
// model knows, and what.
func (u *updater) sample(ctx context.Context, step int) (held []model.Example, lessons []model.Lesson, err error) {
	at := 0
	err = u.cv.forEachLesson(ctx, u.v.snap, func(codec.Lesson) bool {
		at++
		return at%step == 0
	}, func(rows []uint32, items []model.Example, taught []model.Lesson) error {
		for i, row := range rows {
			rec, err := readRecord(u.v.snap, u.cv.ID, row)
			if err != nil {
				return err
			}
			if u.cv.space.model.Knows(rec.Labels) {
				items[i].Labels = rec.Labels
				held, lessons = append(held, items[i]), append(lessons, taught[i])
			}
		}
		return nil
	})
	return held, lessons, err
}

// commit makes what was learned a revision, and stores what taught it.
func (u *updater) commit(ctx context.Context) error {
	changes := len(u.rows) > 0 || u.forgotten > 0 || u.checkpoint
	if !changes && u.seen.IsEmpty() {
		return nil
	}
	var next *space
	var d *revisionDescriptor
	var projections, statistics []byte
	if changes {
		m, err := u.l.online.Revision()
		if err != nil {
			return u.learning(err)
		}
		sp := u.cv.space
		next = sp.revised(sp.Revision+1, m)
		if projections, err = m.MarshalRevision(sp.trained); err != nil {
			return u.learning(err)
		}
		if d, err = u.descriptor(m, next.Revision, projections); err != nil {
			return err
		}
		u.l.ahead += len(u.rows)
		if u.checkpoint = u.checkpoint || u.l.ahead >= checkpointItems && !u.l.shrunk(); u.checkpoint {
			if statistics, err = u.l.online.Statistics().MarshalBinary(); err != nil {
				return u.learning(err)
			}
		}
	}
	err := u.inSpace(ctx, func(g *group, s *collectionState, sp *spaceState) error {
		if next == nil {
			g.notPending(sp, u.seen)
			s.dirty = true
			return nil
		}
		if next.Revision == maxRows {
			return fmt.Errorf("%w: revisions of space %d", ErrFull, sp.ID)
		}
		departures, err := u.departures(sp)
		if err != nil {
			return err
		}
		recode, err := carriers(g.c.store, s.ID, u.recode)
		if err != nil {
			return err
		}
		if err := g.writeRevision(sp, d, projections); err != nil {
			return err
		}
		if statistics != nil {
			if err := g.writeCheckpoint(sp, statistics, u.l.outbox); err != nil {
				return err
			}
			sp.numbers.Checkpoint = uint64(next.Revision)
		}
		for i, row := range u.rows {
			if departures[row] == nil {
				g.learn(sp, row, codec.Lesson{Revision: next.Revision, Codes: u.lessons[i]}, false)
				continue
			}
			if err := g.depart(sp, departures[row]); err != nil {
				return err
			}
		}
		g.notPending(sp, u.seen)
		for it := recode.Iterator(); it.HasNext(); {
			g.setOnline(sp, codec.SetRecode, it.Next(), true)
		}
		sp.revise(next)
		s.dirty = true
		return nil
	})
	if err != nil || next == nil {
		return err
	}
	u.revision = next.Revision
	u.l.revision, u.l.forgotten = next.Revision, 0
	if statistics != nil {
		u.l.ahead = 0
	}
	return nil
}

// inSpace runs f in the committer, alone, with the space, which must be as it was.
func (u *updater) inSpace(ctx context.Context, f func(g *group, s *collectionState, sp *spaceState) error) error {
	return u.c.exclusive(ctx, false, func(g *group, s *collectionState) error {
		sp := s.spaceByID(u.cv.space.ID)
		if sp == nil {
			return notFound("space %d of collection %q, which was being updated", u.cv.space.ID, s.Name)
		}
		if sp.space != u.cv.space {
			return fmt.Errorf("%w: space %d of collection %q has got another revision meanwhile", ErrBusy, sp.ID, s.Name)
		}
		return f(g, s, sp)
	})
}

// departures returns what rows have just taught that have changed since: it has to be
// taken out again.
func (u *updater) departures(sp *spaceState) (map[uint32]*codec.Departure, error) {
	out := map[uint32]*codec.Departure{}
	bytes := 0
	for i, row := range u.rows {
		if !sp.changed.Contains(row) {
			continue
		}
		if bytes > MaxBatchBytes {
			return nil, fmt.Errorf("%w: too much of what taught space %d has been overwritten meanwhile: try again", ErrBusy, sp.ID)
		}
		l := codec.Lesson{Revision: sp.Revision + 1, Codes: u.lessons[i]}
		d, err := departure(u.v.snap, u.cv.descriptor, sp.modalities, row, l)
		if err != nil {
			return nil, err
		}
		out[row] = d
		bytes += d.Bytes()
	}
	return out, nil
}

// notPending takes rows from the pending ones, but those that have changed since the
// updater took its view.
func (g *group) notPending(sp *spaceState, seen *roaring.Bitmap) {
	it := roaring.AndNot(seen, sp.changed).Iterator()
	for it.HasNext() {
		g.setOnline(sp, codec.SetPending, it.Next(), false)
	}
}

// descriptor describes the revision.
func (u *updater) descriptor(m *model.Model, revision uint32, projections []byte) (*revisionDescriptor, error) {
	residuals, err := m.Residual(u.l.online.Statistics())
	if err != nil {
		return nil, u.learning(err)
	}
	d := &revisionDescriptor{Model: chunkedOf(projections), Outbox: u.l.outbox, RevisionInfo: RevisionInfo{
		Revision: revision, Parent: u.parent, Created: now(),
		Teacher: u.teacherName, Lead: u.lead, Reason: u.reason,
		Items: u.labelled + u.unlabelled, Labelled: u.labelled, Unlabelled: u.unlabelled, Forgotten: u.forgotten,
		Residual: map[string]float64{}, Drift: u.drift,
	}}
	for i, t := range u.cv.space.modalities {
		d.Residual[u.cv.Modalities[t].Name] = residuals[i]
	}
	return d, nil
}

// keptRevisions is how many revisions are kept besides the first one and those that are
// pinned, the present one included.
const keptRevisions = 8

// writeRevision stores a revision, and deletes those that need not be kept.
func (g *group) writeRevision(sp *spaceState, d *revisionDescriptor, projections []byte) error {
	if err := g.writeRevisionDescriptor(sp, d); err != nil {
		return err
	}
	prefix := codec.RevisionPrefix(sp.in, sp.ID, d.Revision)
	if err := g.writeChunks(prefix, 1, projections); err != nil {
		return err
	}
	kept := append(slices.Clone(sp.revisions), d) // views share the slice
	loose := 0
	for i := len(kept) - 1; i >= 0; i-- {
		if r := kept[i]; r.Pinned || r.Revision == 1 {
			continue
		}
		if loose++; loose <= keptRevisions {
			continue
		}
		prefix := codec.RevisionPrefix(sp.in, sp.ID, kept[i].Revision)
		if err := g.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
		kept = slices.Delete(kept, i, i+1)
	}
	sp.revisions = kept
	return nil
}

func (g *group) writeRevisionDescriptor(sp *spaceState, d *revisionDescriptor) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return g.batch.Set(codec.RevisionKey(sp.in, sp.ID, d.Revision, 0), b, nil)
}
