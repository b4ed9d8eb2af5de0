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

// The statistics of a space are stored now and then only (a checkpoint): they are
// large. In between, what rows have taught since stands in their lessons, and what has
// to be taken out again in the outbox:
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - departures whose lessons are of revisions up to the checkpoint
//
// Lessons and departures are written in the commits of the updates and writes that
// cause them, so this holds after a crash at any point.

// A learner carries on the learning of the projections of one space. It is made when
// it is first needed and stays, as the statistics take a while to be brought up to
// date.
type learner struct {
	busy chan struct{} // holds one while somebody works with it

	online   *model.Online // nil: to be made from what is stored
	revision uint32        // the last one whose lessons it has learned
	outbox   uint64        // departures before this number have been taken out
	ahead    int           // items that the checkpoint knows nothing of, or too many

	traces    []float64 // the largest that there have been, by modality, see cancelled
	refused   int       // items without labels, when they were last tried and refused
	forgotten int       // items that have been taken out since the last revision
}

// learners are those of a database.
type learners struct {
	mu sync.Mutex
	of map[learnerKey]*learner
}

type learnerKey struct{ collection, space uint32 }

// get returns the learner of a space, locked. release gives it back.
func (l *learners) get(ctx context.Context, key learnerKey) (*learner, error) {
	l.mu.Lock()
	if l.of == nil {
		l.of = map[learnerKey]*learner{}
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

func (l *learner) release() { <-l.busy }

// forget lets go of what it knows, which may be wrong.
func (l *learner) forget() { l.online = nil }

// remove forgets the learner of a space that has been dropped.
func (l *learners) remove(key learnerKey) {
	l.mu.Lock()
	delete(l.of, key)
	l.mu.Unlock()
}

// learner returns the learner of the space that cv looks at, up to date with the view
// and locked until it is released.
func (d *Database) learner(ctx context.Context, v *state.View, cv *state.CollectionView) (*learner, error) {
	l, err := d.learners.get(ctx, learnerKey{cv.ID, cv.Space.ID})
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

// catchUp brings the statistics to those of the view.
func (l *learner) catchUp(ctx context.Context, v *state.View, cv *state.CollectionView) error {
	learned := uint64(l.revision) // the last revision whose lessons were learned before they departed
	// Somebody else may have worked with a newer view.
	if l.online == nil || l.revision != cv.Space.Revision || l.outbox > cv.Numbers.NextOutbox {
		if err := l.load(ctx, v, cv); err != nil {
			return err
		}
		learned = cv.Numbers.Checkpoint
	}
	if l.outbox == cv.Numbers.NextOutbox {
		return nil
	}
	l.trace()
	if err := l.takeOut(ctx, v.Snap, cv, uint32(learned)); err != nil || !l.cancelled() {
		return err
	}
	return l.learnAnew(ctx, v, cv, nil)
}

// load reads the checkpoint and adds the lessons after it.
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
	if restored := i >= 0 && cv.Revisions[i].Teacher == spaces.Restored; restored || sp.Parent != 0 && sp.Revision == 1 {
		l.online.Refit() // the statistics have gone on since these projections
	}
	l.online.Workers = work.Background()
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

// takeOut takes the departures out of the statistics that have not been yet, and are
// of a revision up to the one given.
func (l *learner) takeOut(ctx context.Context, r pebble.Reader, cv *state.CollectionView, upTo uint32) error {
	sp := cv.Space
	next := cv.Numbers.NextOutbox
	known := uint64(0) // to the projections, before this number
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
			return nil
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
		l.outbox = next
	}
	return err
}

// checkpointItems is after how many items the statistics are stored again: so much is
// learned anew at worst when the database is opened after a crash.
const checkpointItems = 10_000

// Checkpoint stores the statistics of all learners that are ahead of what is
// stored. It is for Close: nobody works with them.
func (d *Database) Checkpoint() {
	d.learners.mu.Lock()
	defer d.learners.mu.Unlock()
	for key, l := range d.learners.of {
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
				if sp == nil || sp.Revision != l.revision || int64(len(statistics)) != sp.Statistics.Bytes {
					return nil
				}
				if err := tx.WriteCheckpoint(sp, statistics, l.outbox); err != nil {
					return err
				}
				sp.Numbers.Checkpoint = uint64(sp.Revision)
				tx.Committer.Touch(s)
				return nil
			})
		})
		if err != nil && d.State.Engine.Log.Err() == nil {
			d.State.Signals.Happened(event.StatisticsUnkept, slog.LevelError, event.Event{Space: key.space, Err: err})
		}
	}
}
