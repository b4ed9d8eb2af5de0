package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Foundation is the beginning of a new space: a model, its statistics, and the lesson of
// each row. A builder makes the codes of the items later. The goroutine that calls Found fills
// it; then the committer stores it (createSpace), while that goroutine waits.
type Foundation struct {
	space      *spaces.Space       // createSpace gives it its number
	activate   bool                // make the space the active one when it is complete
	number     uint32              // of the space; 0: the next one
	model      []byte              // the model in its binary form, stored in chunks
	statistics []byte              // the statistics in their binary form, stored in chunks; nil without spaces.Space.HasStatistics
	report     json.RawMessage     // the report of the training, part of the descriptor
	revision   report.RevisionInfo // describes revision 1; createSpace adds number and date
	rows       []uint32            // the rows that have taught, ascending
	lessons    []codec.Taught      // what each of rows has taught; equal ones share their memory
	pending    *roaring.Bitmap     // the rows that have not taught, none without statistics; createSpace hands it to the space
	expected   map[string]float64  // see spaces.RevisionDescriptor
	before     uint64              // without statistics: rows below it were there when the model was trained
	replaced   uint32              // createSpace sets it: the unfinished space that it has dropped; 0: none
	relearn    *roaring.Bitmap     // rows with lessons of outdated codes, which depart; may be nil; shared with the view

	known map[string]codec.Taught // the distinct lessons, by their stored form: about one a label set
	key   []byte                  // scratch memory
}

// addLesson appends the lesson of a row, which must be the next in ascending order. It copies
// the lesson if that is new.
func (f *Foundation) addLesson(row uint32, t codec.Taught) {
	f.key = codec.Lesson{Taught: t}.Append(f.key[:0])
	own, known := f.known[string(f.key)]
	if !known {
		if f.known == nil {
			f.known = map[string]codec.Taught{}
		}
		own = t.Clone()
		f.known[string(f.key)] = own
	}
	f.rows, f.lessons = append(f.rows, row), append(f.lessons, own)
}

// bytes returns about how many bytes the commit of the foundation writes.
func (f *Foundation) bytes() int {
	n := len(f.model) + len(f.statistics)
	for _, t := range f.lessons {
		n += 10 + len(t.Codes) + 5*len(t.Labels)
	}
	return n
}

// Found stores a new space without codes, which a builder has to complete. prepare makes its
// foundation from a view of the collection, in the goroutine of the caller, and may take long.
// Rows that change meanwhile are recorded, and made up for in the commit. With replace, the
// new space replaces one that an interrupted training has left.
//
// The commit takes about as many bytes as the foundation, at most 3 GiB. Errors: ErrBusy if
// another space is being founded or built, ErrInvalid for a codes-only collection and a
// foundation that is too large, any error of prepare. After an error the collection is as it was.
func (c Collection) Found(ctx context.Context, replace bool, prepare func(v *state.View, cv *state.CollectionView) (*Foundation, error)) (*spaces.Space, error) {
	v, err := c.beginFounding(ctx, replace)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	founded := false
	defer func() {
		// createSpace has ended the recording then.
		if founded {
			return
		}
		// The committer stops recording rows, even if ctx has ended or prepare has panicked. In
		// a database that has failed it cannot, and need not.
		_ = c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			s.Changed = nil
			return nil
		})
	}()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return nil, err
	}
	f, err := prepare(v, cv)
	if err != nil {
		return nil, err
	}
	err = c.Do(ctx, f.bytes(), func(tx *state.Tx, s *state.CollectionState) error { return createSpace(tx, s, f, v, cv) })
	if err != nil {
		return nil, err
	}
	founded = true
	if f.replaced != 0 {
		c.in.learners.remove(spaceKey{c.ID, f.replaced})
		c.DB.Signals.Tell(ctx, event.Event{Name: event.SpaceDropped, Collection: c.Name, Space: f.replaced})
	}
	return f.space, nil
}

// abandon drops a space if it is still being built, even when ctx has ended.
func (c Collection) abandon(ctx context.Context, space uint32) {
	_ = c.Free(context.WithoutCancel(ctx), func(tx *state.Tx, s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil && sp.Numbers.Building {
			return tx.DropSpace(s, sp)
		}
		return nil
	})
}

// beginFounding returns the view to found a space on, which the caller releases. From that
// view on the committer records changed rows in CollectionState.Changed, which also marks
// that a founding goes on.
func (c Collection) beginFounding(ctx context.Context, replace bool) (*state.View, error) {
	var v *state.View
	err := c.Look(ctx, func(s *state.CollectionState) error {
		switch {
		case s.CodesOnly():
			return fault.Invalid("collection %q has no model: its items bring their codes", s.Name)
		case s.Changed != nil:
			return fmt.Errorf("%w: collection %q: wait for the other training, or reindexing, to end", fault.ErrBusy, s.Name)
		}
		if sp := s.Building(); sp != nil && !(replace && sp.LeftByTraining()) {
			return fmt.Errorf("%w: collection %q: space %d is being built: wait for it (reindex), or drop it", fault.ErrBusy, s.Name, sp.ID)
		}
		// Recording and the view begin in one request, so no write falls between them.
		s.Changed = roaring.New()
		v = c.DB.Current.Load() // it stays while an operation runs, as this one does
		v.Acquire()
		return nil
	})
	return v, err
}

// maxFoundationBytes keeps the batch of a foundation below 4 GB, the most that Pebble takes.
const maxFoundationBytes = 3 << 30

// createSpace stores a foundation that was made on view v, with cv the collection in it. It
// runs in the committer, alone in its commit. Lessons of rows that have changed since v become
// departures with the features of v: the statistics contain these.
func createSpace(tx *state.Tx, s *state.CollectionState, f *Foundation, v *state.View, cv *state.CollectionView) error {
	number := uint64(f.number)
	if number == 0 {
		number = s.Counters.NextSpace
	}
	if number >= record.MaxRows {
		return fmt.Errorf("%w: spaces of collection %q", fault.ErrFull, s.Name)
	}
	// Numbers ascend in the counters.
	if i := slices.IndexFunc(s.Spaces, func(sp *state.SpaceState) bool { return uint64(sp.ID) >= number }); i >= 0 {
		return fmt.Errorf("%w: space %d of collection %q, so that a new one cannot be %d", fault.ErrExists, s.Spaces[i].ID, s.Name, number)
	}
	// First everything that may fail: limits, and reading. Batch and counters of a request that
	// fails are dropped, but what it has changed in memory would stay.
	size := f.bytes()
	if size > maxFoundationBytes {
		return fault.Invalid("what %d items have taught is too much for one commit (%d bytes of at most %d): train on fewer rows, or with fewer bits",
			len(f.rows), size, maxFoundationBytes)
	}
	sp := f.space
	sp.ID, sp.Created = uint32(number), spaces.Now()
	sp.Model, sp.Statistics = record.ChunksOf(f.model), record.ChunksOf(f.statistics)
	if err := record.WriteChunks(tx.Batch, codec.NumberKey(codec.KindModel, s.ID, sp.ID), 0, f.model); err != nil {
		return err
	}
	if err := record.WriteChunks(tx.Batch, codec.NumberKey(codec.KindStatistics, s.ID, sp.ID), 0, f.statistics); err != nil {
		return err
	}
	if err := tx.WriteDescriptor(s, sp, f.report); err != nil {
		return err
	}
	gone := s.Changed // the rows whose lessons are to depart, then all that have to teach again
	if f.relearn != nil {
		gone = roaring.Or(gone, f.relearn)
	}
	// Read the departures before anything changes: reading may fail.
	departures := map[uint32]*codec.Departure{}
	for i, row := range f.rows {
		if !gone.Contains(row) {
			continue
		}
		d, err := record.Departure(v.Snap, cv.Descriptor, sp.Positions, row, codec.Lesson{Revision: sp.Revision, Taught: f.lessons[i]})
		if err != nil {
			return err
		}
		// The departure has the features of the view, with which the row has taught. The snapshot of
		// v still has them after a write.
		departures[row] = d
		if size += d.Bytes(); size > maxFoundationBytes {
			return fmt.Errorf("%w: too much of what collection %q was trained on has been overwritten meanwhile: try again", fault.ErrBusy, s.Name)
		}
	}
	left := s.Building()
	if left != nil && !left.LeftByTraining() {
		return fmt.Errorf("%w: collection %q: somebody wants space %d, which is being built: wait for it (reindex), or drop it", fault.ErrBusy, s.Name, left.ID)
	}
	// From here on the state changes, so nothing may fail. Only a batch that is too large
	// could, and that is ruled out above.
	if left != nil {
		if err := tx.DropSpace(s, left); err != nil {
			return err
		}
		f.replaced = left.ID
	}
	made := state.NewSpaceState(s.ID, sp)
	first := &spaces.RevisionDescriptor{RevisionInfo: f.revision, Rows: f.before, Expected: f.expected}
	first.Revision, first.Created = sp.Revision, sp.Created
	if err := tx.WriteRevisionDescriptor(made, first); err != nil {
		return err
	}
	made.Revisions = []*spaces.RevisionDescriptor{first}
	made.Numbers.Building = true
	if sp.HasStatistics() {
		made.Numbers.Checkpoint = uint64(sp.Revision)
	}
	// The first space of a collection becomes active without being asked for.
	made.Numbers.Activate = f.activate || s.Counters.ActiveSpace == 0
	for i, row := range f.rows {
		if d := departures[row]; d != nil {
			if err := tx.Depart(made, d); err != nil {
				return err
			}
			continue
		}
		tx.Learn(made, row, codec.Lesson{Revision: sp.Revision, Taught: f.lessons[i]}, true)
	}
	// Rows that have changed teach again, if they are there and have features.
	if sp.HasStatistics() {
		f.pending.Or(gone)
		f.pending.And(s.Having(sp.Positions))
	}
	err := record.ByContainer(f.pending, func(container uint16, l codec.Layer) error {
		// The set is new, so each container is stored whole and not row by row.
		tx.Layers[string(codec.OnlineRowsKey(s.ID, sp.ID, codec.SetPending, container))] = l
		return nil
	})
	if err != nil {
		return err
	}
	made.Pending.B = f.pending
	s.Spaces = append(s.Spaces, made)
	s.Counters.NextSpace = max(s.Counters.NextSpace, number+1)
	s.Changed = nil
	tx.Committer.Touch(s)
	return nil
}
