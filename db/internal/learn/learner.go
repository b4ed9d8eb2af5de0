package learn

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// The statistics of a space are large, so they are stored only now and then, as a checkpoint.
// Since then, rows that teach leave lessons, and rows that have taught and change leave
// departures in the outbox. At any time
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - departures whose lessons are of revisions up to the checkpoint
//
// A departure of a later lesson needs no subtraction: that lesson went with it, and the sum
// never had it. Lessons and departures are written in the commits of the updates and writes
// that cause them, so the equation holds after a crash at any point.

// A learner holds the statistics of one space in memory and carries them on. It is made when
// it is first needed, and stays until the space is dropped, as bringing it up to date takes a
// while. It takes the memory that the comment of model.Online gives.
type learner struct {
	// busy is a lock that ends with a context: it holds one while a goroutine uses the
	// learner. It guards all fields below. Only Checkpoint, in Close, goes without.
	busy chan struct{}

	online   *model.Online // statistics and projections; nil: load them from the store
	revision uint32        // the last revision whose lessons the statistics have
	outbox   uint64        // departures with smaller numbers have been taken out
	ahead    int           // by how many items the statistics differ from the checkpoint; 0: they are equal

	traces    []float64 // by modality: the largest trace of A since it was loaded or made anew, see cancelled
	refused   int       // how many rows without labels were pending when TeacherAuto last refused them; 0: never since opening
	forgotten int       // departures that the present revision does not know of
}

// learners are the learners of a database. Safe for concurrent use.
type learners struct {
	mu sync.Mutex
	of map[spaceKey]*learner // guarded by mu; made by the first get
}

// get returns the learner of a space, locked, and makes it if need be; the caller must release
// it. It waits for the goroutine that uses the learner, or until ctx ends. The statistics may
// be out of date; Database.learner brings them up to date.
func (l *learners) get(ctx context.Context, key spaceKey) (*learner, error) {
	l.mu.Lock()
	if l.of == nil {
		l.of = map[spaceKey]*learner{}
	}
	one := l.of[key]
	if one == nil {
		one = &learner{busy: make(chan struct{}, 1)}
		l.of[key] = one
	}
	l.mu.Unlock()
	select {
	case one.busy <- struct{}{}:
		return one, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release unlocks the learner.
func (l *learner) release() { <-l.busy }

// forget drops the statistics, which may be wrong after an error: the next use loads them.
func (l *learner) forget() { l.online = nil }

// remove drops the learner of a space. A goroutine that uses it may go on.
func (l *learners) remove(key spaceKey) {
	l.mu.Lock()
	delete(l.of, key)
	l.mu.Unlock()
}

// learner returns the learner of the space of cv, locked and up to date with view v. The
// caller must release it.
func (d *Database) learner(ctx context.Context, v *state.View, cv *state.CollectionView) (*learner, error) {
	l, err := d.learners.get(ctx, spaceKey{cv.ID, cv.Space.ID})
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

// catchUp brings the statistics up to date with the view. It takes out the departures since,
// and loads the statistics if they are of another revision.
func (l *learner) catchUp(ctx context.Context, v *state.View, cv *state.CollectionView) error {
	learned := uint64(l.revision) // departures of lessons up to this revision are still in the statistics
	// Another goroutine may have used the learner with a newer view, and taken out departures that
	// this view does not have. They cannot be put back, so the statistics are loaded again.
	if l.online == nil || l.revision != cv.Space.Revision || l.outbox > cv.Numbers.NextOutbox {
		if err := l.load(ctx, v, cv); err != nil {
			return err
		}
		// load adds only those later lessons that rows still have. So the departures of later lessons
		// are in no sum, and must stay out.
		learned = cv.Numbers.Checkpoint
	}
	if l.outbox == cv.Numbers.NextOutbox {
		return nil
	}
	// Record the traces before anything is taken out: cancelled compares with them.
	l.trace()
	if err := l.takeOut(ctx, v.Snap, cv, uint32(learned)); err != nil || !l.cancelled() {
		return err
	}
	// With all departures taken out, just the stored lessons are left in the sum.
	return l.learnAnew(ctx, v, cv, nil)
}

// load reads the checkpoint and adds the lessons after it. Departures are left to takeOut. Its
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
	untaught := i >= 0 && (cv.Revisions[i].Teacher == spaces.Restored || cv.Revisions[i].Teacher == spaces.Imported)
	if untaught || sp.Parent != 0 && sp.Revision == 1 {
		l.online.Refit() // these projections are not those of the statistics
	}
	l.online.Workers = work.Background()
	// The checkpoint has taken out the departures that were deleted with it, so counting from 0
	// finds the others.
	l.revision, l.outbox, l.ahead, l.forgotten = sp.Revision, 0, 0, 0
	l.traces = make([]float64, len(sp.Positions))
	if cv.Numbers.Checkpoint == uint64(sp.Revision) {
		return nil
	}
	later := func(lesson codec.Lesson) bool { return uint64(lesson.Revision) > cv.Numbers.Checkpoint }
	return sp.ForEachLesson(ctx, v.Snap, cv.Descriptor, later, func(_ []uint32, items []model.Example, lessons []model.Lesson) error {
		l.ahead += len(items)
		return fault.Annotate(l.online.Relearn(ctx, items, lessons), "what rows of space %d have taught", sp.ID)
	})
}

// takeOut subtracts the departures from number l.outbox on, if their lessons are of revisions up
// to upTo: the statistics do not have the later ones. It also counts the departures that the
// present revision does not know of (l.forgotten).
func (l *learner) takeOut(ctx context.Context, r pebble.Reader, cv *state.CollectionView, upTo uint32) error {
	sp := cv.Space
	next := cv.Numbers.NextOutbox
	known := uint64(0) // the projections know of the departures before this number
	if i := len(cv.Revisions) - 1; i >= 0 {
		known = cv.Revisions[i].Outbox
	}
	var items []model.Example
	var lessons []model.Lesson
	flush := func() error {
		err := fault.Annotate(l.online.Forget(ctx, items, lessons), "what rows of space %d had taught", sp.ID)
		l.ahead += len(items)
		items, lessons = items[:0], lessons[:0]
		return err
	}
	end := codec.PrefixEnd(codec.NumberKey(codec.KindOutbox, cv.ID, sp.ID))
	err := record.ForEachIn(r, codec.OutboxKey(cv.ID, sp.ID, l.outbox), end, func(key, value []byte) error {
		d, err := codec.DecodeDeparture(sp.Bits, value)
		if err == nil && codec.OutboxNumber(key) >= next {
			err = fmt.Errorf("the next number is %d", next)
		}
		if err != nil {
			return fault.Corrupt(err, "outbox %x", key)
		}
		if codec.OutboxNumber(key) >= known {
			l.forgotten++
		}
		if d.Revision > upTo {
			return nil // the statistics never had its lesson
		}
		vectors := make([]model.Vector, len(cv.Modalities))
		for _, f := range d.Features {
			if int(f.Modality) >= len(vectors) {
				return fault.Corrupt(fmt.Errorf("modality %d of %d", f.Modality, len(vectors)), "outbox %x", key)
			}
			if err := cv.Modalities[f.Modality].DecodeVector(&vectors[f.Modality], f.Record); err != nil {
				return fault.Corrupt(err, "outbox %x", key)
			}
		}
		item := sp.Example(vectors, nil)
		lesson, err := sp.Lesson(d.Lesson, item)
		if err != nil {
			return fault.Corrupt(err, "outbox %x", key)
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
		l.outbox = next
	}
	return err
}

// checkpointItems is the number of items after which an update stores the statistics again. It
// bounds the lessons that the first update after a crash has to add again.
const checkpointItems = 10_000

// Checkpoint stores the statistics of all learners that differ from their checkpoint. Close
// calls it when no other goroutine learns any more; so it locks no learner, and keeps
// learners.mu while the committer stores. A failure costs time after the next Open and nothing
// else: it is an event.
func (d *Database) Checkpoint() {
	d.learners.mu.Lock()
	defer d.learners.mu.Unlock()
	for key, l := range d.learners.of {
		// Statistics that have shrunk carry rounding that a reader of the checkpoint could not
		// notice.
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
				if err := tx.WriteCheckpoint(s, sp, next, statistics, l.outbox); err != nil {
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
