package learn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

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

// The statistics of a space are large, so they are stored only now and then, as a checkpoint.
// Since then, rows that teach leave lessons, and rows that have taught and change leave
// retractions in their queue. At any time
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - retractions whose lessons are of revisions up to the checkpoint
//
// A retraction of a later lesson needs no subtraction: that lesson went with it, and the sum
// never had it. Lessons and retractions are written in the commits of the updates and writes
// that cause them, so the equation holds after a crash at any point.

// A learner holds the statistics of one space in memory and updates them. It is made at the first use, and
// stays until the space is dropped, because bringing it up to date takes a while. The comment of model.Online
// gives its memory.
type learner struct {
	turn // guards all fields below. Only Checkpoint, in Close, goes without.

	online    *model.Online // statistics and projections; nil: load them from the store
	revision  uint32        // the last revision whose lessons the statistics have
	retracted uint64        // retractions with smaller numbers have been taken out
	ahead     int           // by how many items the statistics differ from the checkpoint; 0: they are equal

	// by modality: the largest trace of A since it was loaded or summed again, see cancelled
	traces []float64
	// how many rows without labels were pending when TeacherAuto last refused them; 0: never since opening
	refused   int
	forgotten int // retractions that the present revision does not include
}

// turnOf returns the learner of a space, locked, and makes it if need be; the caller must release
// it. It waits for the goroutine that uses the learner, or until ctx ends. The statistics may
// be out of date; Database.learner brings them up to date.
func (d *Database) turnOf(ctx context.Context, key spaceKey) (*learner, error) {
	one := d.learners.get(key, func() *learner { return &learner{turn: newTurn()} })
	select {
	case one.turn <- struct{}{}:
		return one, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget drops the statistics, which may be wrong after an error: the next use loads them.
func (l *learner) forget() { l.online = nil }

// learner returns the learner of the space of cv, locked and up to date with view v. The
// caller must release it.
func (d *Database) learner(ctx context.Context, v *state.View, cv *state.CollectionView) (*learner, error) {
	l, err := d.turnOf(ctx, spaceKey{cv.ID, cv.Space.ID})
	if err != nil {
		return nil, err
	}
	if err := l.catchUp(ctx, v, cv); err != nil {
		l.forget()
		l.release()
		return nil, err
	}
	return l, nil
}

// catchUp brings the statistics up to date with the view. It takes out the retractions since,
// and loads the statistics if they are of another revision.
func (l *learner) catchUp(ctx context.Context, v *state.View, cv *state.CollectionView) error {
	learned := uint64(l.revision) // retractions of lessons up to this revision are still in the statistics
	// Another goroutine may have used the learner with a newer view, and taken out retractions that
	// this view does not have. They cannot be put back, so the statistics are loaded again.
	if l.online == nil || l.revision != cv.Space.Revision || l.retracted > cv.Numbers.NextRetraction {
		if err := l.load(ctx, v, cv); err != nil {
			return err
		}
		// load adds only later lessons that rows still have. So the retractions of other later lessons must
		// not be subtracted.
		learned = cv.Numbers.Checkpoint
	}
	if l.retracted == cv.Numbers.NextRetraction {
		return nil
	}
	// Record the traces before any subtraction: cancelled compares with them.
	l.trace()
	if err := l.takeOut(ctx, v.Snap, cv, uint32(learned)); err != nil || !l.cancelled() {
		return err
	}
	// After all retractions the sum has just the stored lessons.
	return l.relearn(ctx, v, cv, nil)
}

// load reads the checkpoint and adds the lessons after it. Retractions are left to takeOut. Its
// errors come from the store, or are ErrCorrupt.
func (l *learner) load(ctx context.Context, v *state.View, cv *state.CollectionView) error {
	sp := cv.Space
	what := fmt.Sprintf("statistics of space %d", sp.ID)
	b, err := record.ReadChunks(v.Snap, codec.NumberKey(codec.KindStatistics, cv.ID, sp.ID), 0, sp.Statistics)
	if err != nil {
		return fault.ReadError(err, "%s", what)
	}
	statistics, err := model.UnmarshalStatistics(b)
	if err == nil {
		l.online, err = model.NewOnline(sp.Learned, statistics)
	}
	if err != nil {
		return fault.Corrupt(err, "%s", what)
	}
	i := len(cv.Revisions) - 1
	untaught := i >= 0 && (cv.Revisions[i].Teacher == spaces.Restored ||
		cv.Revisions[i].Teacher == spaces.Imported)
	if untaught || sp.Parent != 0 && sp.Revision == 1 {
		l.online.Refit() // the model has other projections than the statistics give
	}
	l.online.Workers = work.Background()
	// The checkpoint has taken out the retractions that were deleted with it, so counting from 0
	// finds the others.
	l.revision, l.retracted, l.ahead, l.forgotten = sp.Revision, 0, 0, 0
	l.traces = make([]float64, len(sp.Positions))
	if cv.Numbers.Checkpoint == uint64(sp.Revision) {
		return nil
	}
	later := func(lesson codec.Lesson) bool { return uint64(lesson.Revision) > cv.Numbers.Checkpoint }
	return sp.ForEachLesson(ctx, v.Snap, cv.Descriptor, later,
		func(_ []uint32, items []model.Example, lessons []model.Lesson) error {
			l.ahead += len(items)
			return fault.Annotate(l.online.Relearn(ctx, items, lessons), "what rows of space %d have taught",
				sp.ID)
		})
}

// takeOut subtracts the retractions from number l.retracted on, if their lessons are of revisions up to upTo:
// the statistics do not have the later ones. It also counts the retractions that the present revision does
// not include (l.forgotten).
func (l *learner) takeOut(ctx context.Context, r pebble.Reader, cv *state.CollectionView, upTo uint32) error {
	sp := cv.Space
	next := cv.Numbers.NextRetraction
	known := uint64(0) // the projections include the retractions before this number
	if i := len(cv.Revisions) - 1; i >= 0 {
		known = cv.Revisions[i].Retracted
	}
	var items []model.Example
	var lessons []model.Lesson
	flush := func() error {
		err := fault.Annotate(l.online.Forget(ctx, items, lessons), "what rows of space %d had taught", sp.ID)
		l.ahead += len(items)
		items, lessons = items[:0], lessons[:0]
		return err
	}
	end := codec.PrefixEnd(codec.NumberKey(codec.KindRetraction, cv.ID, sp.ID))
	err := record.ForEachIn(r, codec.RetractionKey(cv.ID, sp.ID, l.retracted), end,
		func(key, value []byte) error {
			d, err := codec.DecodeRetraction(sp.Bits, value)
			if err == nil && codec.RetractionNumber(key) >= next {
				err = fmt.Errorf("the next number is %d", next)
			}
			if err != nil {
				return fault.Corrupt(err, "retraction %x", key)
			}
			if codec.RetractionNumber(key) >= known {
				l.forgotten++
			}
			if d.Revision > upTo {
				return nil // the statistics never had its lesson
			}
			vectors, err := cv.DecodeFeatures(d.Features)
			if err != nil {
				return fault.Corrupt(err, "retraction %x", key)
			}
			item := sp.Example(vectors, nil)
			lesson, err := sp.Lesson(d.Lesson, item)
			if err != nil {
				return fault.Corrupt(err, "retraction %x", key)
			}
			items, lessons = append(items, item), append(lessons, lesson)
			if len(items) == model.MaxLesson {
				return flush()
			}
			return nil
		})
	if err == nil {
		err = flush()
	}
	if err == nil {
		// Only now: after an error the statistics lack some of them, and are forgotten.
		l.retracted = next
	}
	return err
}

// checkpointItems is the number of items after which an update stores the statistics again. It
// bounds the lessons that the first update after a crash has to add again.
const checkpointItems = 10_000

// Checkpoint stores the statistics of all learners that differ from their checkpoint. Close calls it after
// all learning has ended; so it locks no learner, and keeps learners.mu while the committer stores. A failure
// is an event: it only costs time after the next Open.
func (d *Database) Checkpoint() {
	d.learners.mu.Lock()
	defer d.learners.mu.Unlock()
	for key, l := range d.learners.of {
		// Statistics that have shrunk carry rounding errors that a reader of the checkpoint could not detect.
		if l.online == nil || l.ahead == 0 || l.shrunk() {
			continue
		}
		err := work.Safely(func() error {
			statistics, err := l.online.Statistics().MarshalBinary()
			if err != nil {
				return err
			}
			return d.State.Committer.Do(context.Background(), len(statistics), func(tx *state.Tx) error {
				s := tx.Committer.States[key.collection]
				if s == nil {
					return nil
				}
				sp := s.SpaceByID(key.space)
				// The learner may be behind: a revision was restored, or an update was not the last.
				if sp == nil || sp.Revision != l.revision {
					return nil
				}
				next := sp.Revised(sp.Revision, sp.Learned)
				if err := tx.WriteCheckpoint(s, sp, next, statistics, l.retracted); err != nil {
					return err
				}
				sp.Revise(next)
				sp.Numbers.Checkpoint = uint64(sp.Revision)
				tx.Committer.Touch(s)
				return nil
			})
		})
		if err != nil && d.State.Engine.Log.Err() == nil {
			e := event.Event{Space: key.space, Err: err}
			if cv, ok := d.State.Current.Load().Collections.Get(key.collection); ok {
				e.Collection = cv.Name
			}
			d.State.Signals.Happened(event.StatisticsUnkept, slog.LevelError, e)
		}
	}
}

// Subtraction leaves rounding errors: an item that is taken out of the statistics leaves 1e-16 of the largest
// sum so far. If nearly all of a sum has gone, as with a vector a million times as long as the others, the
// rest has a large relative error. Then the sums are computed again.

// maxCancelled is the factor by which a trace may shrink before the sums are computed again. Up to it they
// are within about 1e-10 of new sums.
const maxCancelled = 1e5

// trace records the largest trace of A of each modality. Call it before a subtraction.
func (l *learner) trace() {
	s := l.online.Statistics()
	for t := range l.traces {
		l.traces[t] = max(l.traces[t], s.Trace(t))
	}
}

// cancelled reports whether so much has been subtracted that the sums have to be computed again. A NaN counts
// as that.
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

// relearn sums the statistics again from the rows of the view whose lessons match want; nil means all. The
// caller ensures that the statistics consist of just these lessons. It reads the features of all these rows,
// at the cost of model.Online.Relearn.
func (l *learner) relearn(ctx context.Context, v *state.View, cv *state.CollectionView,
	want func(codec.Lesson) bool) error {
	m := cv.Space.Learned
	online, err := model.NewOnline(m, model.NewStatistics(m))
	if err != nil {
		return err
	}
	online.Workers = l.online.Workers
	err = cv.Space.ForEachLesson(ctx, v.Snap, cv.Descriptor, want,
		func(_ []uint32, items []model.Example, lessons []model.Lesson) error {
			return online.Relearn(ctx, items, lessons)
		})
	if err != nil {
		return err
	}
	// The new sums carry no rounding errors of removed items.
	clear(l.traces)
	l.online = online
	l.ahead++ // the checkpoint may have older rounding
	return nil
}

// A model knows the labels that it was trained with. The code of an item with other labels comes from its
// features alone. A label that grows gets a direction of its own in the code space, so the code of each item
// that carries it changes. That may be many items: the commit that grows the label notes their rows, and
// recode makes their codes later, block by block. Until then such an item does not have the code of its
// labels (codec.SetRecode), which verification allows.

// GrowLabels gives each label that items carry and the model of a space does not know a
// direction of its own in the code space (model.Online.Grow). space 0 is the active one. One
// commit stores the revision that knows the labels, the statistics, and the set of rows to
// recode; the method recode then makes their codes. It adds its part to out: Grown,
// NoDirection, Forgotten, Revised. There are as many directions left as bits exceed the
// labels, or one more. A label beyond that is named in NoDirection, and is no error.
func (c Collection) GrowLabels(ctx context.Context, space uint32, out *report.Update) error {
	return c.revise(ctx, space, func(u *updater) error {
		out.Space, out.Revision = report.Space(u.cv.Space.ID), u.cv.Space.Revision
		known := u.cv.Space.Learned.Labels()
		if u.l.shrunk() { // the commit below stores the statistics
			if err := u.l.relearn(ctx, u.v, u.cv, nil); err != nil {
				return err
			}
		}
		var grown []uint32
		for id, name := range u.cv.Names {
			if _, is := slices.BinarySearch(known, uint32(id)); is {
				continue
			}
			// Labels that no item carries must not use up directions.
			rows, err := record.LabelRows(u.v.Snap, u.cv.ID, uint32(id))
			if err != nil {
				return err
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case rows.IsEmpty():
				continue
			case len(out.NoDirection) > 0: // no direction is left for any label
				out.NoDirection = append(out.NoDirection, name)
				continue
			}
			err = u.l.online.Grow(uint32(id))
			switch {
			case errors.Is(err, model.ErrNoDirection):
				out.NoDirection = append(out.NoDirection, name)
				continue
			case err != nil:
				return u.learning(err)
			}
			// The learner has the direction from here on, in memory alone. If the commit fails, revise makes
			// it forget its statistics.
			grown, out.Grown = append(grown, uint32(id)), append(out.Grown, name)
		}
		if len(grown) == 0 {
			return nil
		}
		u.checkpoint = true // the stored statistics have the fingerprint of a model without these labels
		u.reason = "labels have got directions"
		u.recode = grown
		err := u.commit(ctx)
		out.Revision, out.Revised, out.Forgotten = u.revision, err == nil, u.forgotten
		return err
	})
}

// recodedRows is the most rows that one commit recodes.
const recodedRows = 1024

// recode makes the codes of the rows in SpaceView.Recode again, block by block, and returns their number.
// space 0 is the active one. The lesson of such a row, taught by its earlier code or labels, goes to the
// queue of retractions, and the row becomes pending. Each block is a commit, so after an error or a crash
// another call goes on with the rest.
func (c Collection) recode(ctx context.Context, space uint32) (n int, err error) {
	for {
		var block *coded
		err := c.Read(func(v *state.View, cv *state.CollectionView) error {
			if cv.CodesOnly() {
				return nil // Update refuses it, with an error that says why
			}
			cv, err := cv.InSpace(space)
			if err != nil || cv.Space == nil || cv.Recode.IsEmpty() {
				return err
			}
			space = cv.Space.ID
			block, err = encodeSome(ctx, v, cv, firstRows(cv.Recode, recodedRows).ToArray())
			return err
		})
		if err != nil || block == nil {
			return n, err
		}
		err = c.Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			sp := s.SpaceByID(space)
			if sp == nil {
				return fault.NotFound("space %d of collection %q", space, s.Name)
			}
			if sp.Space != block.space {
				return nil // another revision has come: encode the block again
			}
			for _, row := range block.rows {
				// Read for all rows before anything changes: reading may fail.
				if _, err := tx.FetchTaught(s, row); err != nil {
					return err
				}
			}
			for i, row := range block.rows {
				if !sp.Recode.B.Contains(row) {
					continue // a write since the view has given it its new code
				}
				// The row has taught its earlier code. That lesson is retracted, and a later update teaches
				// the row with the new code.
				if err := tx.Unlearn(sp, row); err != nil {
					return err
				}
				if err := tx.SetCodes(s, sp, row, block.encs[i]); err != nil {
					return err
				}
				tx.SetOnline(sp, codec.SetRecode, row, false)
				tx.SetOnline(sp, codec.SetPending, row, block.teaches[i])
				if sp.Changed != nil { // an update is running, and its view has the row with the old code
					sp.Changed.Add(row)
				}
				n++
			}
			tx.Committer.Touch(s)
			return nil
		})
		if err != nil {
			return n, err
		}
	}
}

// encodeSome encodes items by their rows, which must be ascending and live in the view. It
// works in the goroutine of the caller, and fills coded.teaches.
func encodeSome(ctx context.Context, v *state.View, cv *state.CollectionView, rows []uint32) (*coded, error) {
	out := &coded{space: cv.Space, rows: rows, encs: make([]spaces.Encoding, len(rows)),
		teaches: make([]bool, len(rows))}
	features, err := record.NewFeatureReader(v.Snap, cv.Descriptor, 0)
	if err != nil {
		return nil, err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(cv.Modalities))
	for i, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rec, err := record.ReadItem(v.Snap, cv.ID, row)
		if err != nil {
			return nil, err
		}
		if err := features.Seek(vectors, row); err != nil {
			return nil, err
		}
		if out.encs[i], err = cv.Space.Encode(vectors, rec.Labels, nil); err != nil {
			return nil, err
		}
		// Decide here, with the vectors at hand: the committer has none.
		out.teaches[i] = slices.ContainsFunc(cv.Space.Positions,
			func(t int) bool { return spaces.Has(vectors, t) })
	}
	return out, nil
}

// A Teacher says from which codes the projections learn in an update. It has the numbers of db.Teacher. Items
// with a label that the model knows teach the aim of the model under every Teacher; the teachers differ in
// the other items.
type Teacher int

// The teachers, in the order of TeacherNames.
const (
	Auto     Teacher = iota // as Modality, if a trial on a copy shows that it helps retrieval
	Labels                  // items without known labels teach nothing
	Modality                // one modality gives the code that all modalities of an item learn
	Self                    // each modality learns the code of its own projection, as in the paper
)

// TeacherNames are the names of the teachers, by number.
var TeacherNames = [...]string{"auto", "labels", "modality", "self"}

// String returns the name of the teacher.
func (t Teacher) String() string {
	if t.Known() {
		return TeacherNames[t]
	}
	return fmt.Sprintf("Teacher(%d)", int(t))
}

// Known reports whether there is such a teacher.
func (t Teacher) Known() bool { return t >= 0 && int(t) < len(TeacherNames) }

// Choices of rows of a collection to learn from or to measure.

// evenly returns limit rows spread evenly over a set, all if it has no more. The result
// belongs to the caller.
func evenly(set *roaring.Bitmap, limit int) *roaring.Bitmap {
	n := int(set.GetCardinality())
	if n <= limit {
		return set.Clone()
	}
	some := roaring.New()
	for i := range limit {
		row, _ := set.Select(uint32(i * n / limit)) // no error: i*n/limit < n
		some.Add(row)
	}
	return some
}

// firstRows returns the lowest limit rows of a set. If the set has no more, the result is the
// set itself, so do not write to it.
func firstRows(set *roaring.Bitmap, limit int) *roaring.Bitmap {
	if set.GetCardinality() <= uint64(limit) {
		return set
	}
	first := roaring.New()
	for it := set.Iterator(); it.HasNext() && limit > 0; limit-- {
		first.Add(it.Next())
	}
	return first
}

// carriers returns the rows that carry at least one of the labels, by id.
func carriers(r pebble.Reader, collection uint32, labels []uint32) (*roaring.Bitmap, error) {
	all := roaring.New()
	for _, id := range labels {
		rows, err := record.LabelRows(r, collection, id)
		if err != nil {
			return nil, err
		}
		all.Or(rows)
	}
	return all, nil
}
