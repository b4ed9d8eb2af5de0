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
	"github.com/fddhdb/fddhdb/model"
)

// A Foundation is what a new space begins with: a model, its statistics, and what each
// row has taught them. The codes of the items come later, see builder.
type Foundation struct {
	space      *spaces.Space // without a number
	activate   bool          // when it is built
	model      []byte
	statistics []byte
	report     json.RawMessage
	revision   report.RevisionInfo // what is told of its revision, but number and date
	rows       []uint32            // that have taught, ascending
	lessons    [][]byte            // what, by row
	pending    *roaring.Bitmap
	replaced   uint32          // the space that it has taken the place of; 0: none
	relearn    *roaring.Bitmap // rows whose lessons are of codes that they have no more; nil: none

	known map[string][]byte // lessons by their bytes: there are few
}

// taught records that the next row has taught these codes, which may go.
func (f *Foundation) taught(row uint32, codes []byte) {
	own, known := f.known[string(codes)]
	if !known {
		if f.known == nil {
			f.known = map[string][]byte{}
		}
		own = slices.Clone(codes)
		f.known[string(own)] = own
	}
	f.rows, f.lessons = append(f.rows, row), append(f.lessons, own)
}

// appendLesson appends the codes that an item has taught as they are stored, zero
// where there is none.
func appendLesson(dst []byte, lesson model.Lesson, bits int) []byte {
	for _, code := range lesson {
		if code == nil {
			dst = append(dst, make([]byte, codec.Bytes(bits))...)
			continue
		}
		dst = code.AppendBytes(dst, bits)
	}
	return dst
}

// bytes returns about how many bytes the foundation takes.
func (f *Foundation) bytes() int {
	lesson := 5 + codec.Bytes(f.space.Bits)
	return len(f.model) + len(f.statistics) + lesson*len(f.rows)
}

// Found makes a new space, which is to be built then: lay says on what, from a view on
// which it may work for long. If it fails, or the context ends, the collection is as it
// was. With replace the new space takes the place of one that a training has left unbuilt.
func (c Collection) Found(ctx context.Context, replace bool, lay func(v *state.View, cv *state.CollectionView) (*Foundation, error)) (*spaces.Space, error) {
	v, err := c.beginFounding(ctx, replace)
	if err != nil {
		return nil, err
	}
	defer v.Release() // then the store need not keep that state any longer
	founded := false
	defer func() {
		if founded {
			return
		}
		// The committer has to forget about it, whatever became of the context, and if
		// a callback has panicked, too. There is nothing to be done about a database
		// that has failed.
		_ = c.Look(context.WithoutCancel(ctx), func(s *state.CollectionState) error {
			s.Changed = nil
			return nil
		})
	}()
	cv, err := v.Collection(c.ID, c.Name)
	if err != nil {
		return nil, err
	}
	f, err := lay(v, cv)
	if err != nil {
		return nil, err
	}
	err = c.Do(ctx, f.bytes(), func(tx *state.Tx, s *state.CollectionState) error { return createSpace(tx, s, f, v, cv) })
	if err != nil {
		return nil, err
	}
	founded = true
	if f.replaced != 0 {
		c.in.learners.remove(learnerKey{c.ID, f.replaced})
		c.DB.Signals.Tell(ctx, event.Event{Name: event.SpaceDropped, Collection: c.Name, Space: f.replaced})
	}
	return f.space, nil
}

// abandon drops a space that is still being built, whatever became of the context.
func (c Collection) abandon(ctx context.Context, space uint32) {
	_ = c.Free(context.WithoutCancel(ctx), func(tx *state.Tx, s *state.CollectionState) error {
		if sp := s.SpaceByID(space); sp != nil && sp.Numbers.Building {
			return tx.DropSpace(s, sp)
		}
		return nil
	})
}

// beginFounding returns the view to found a space on; from then on the committer
// records the rows that change.
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
		s.Changed = roaring.New()
		v = c.DB.Current.Load() // only the committer replaces it
		v.Acquire()
		return nil
	})
	return v, err
}

// maxFoundationBytes keeps the batch of a foundation below the 4 GB at which Pebble
// gives up.
const maxFoundationBytes = 3 << 30

// createSpace stores the foundation of a space, which was laid on a view.
func createSpace(tx *state.Tx, s *state.CollectionState, f *Foundation, v *state.View, cv *state.CollectionView) error {
	if s.Counters.NextSpace == record.MaxRows {
		return fmt.Errorf("%w: spaces of collection %q", fault.ErrFull, s.Name)
	}
	size := f.bytes()
	if size > maxFoundationBytes {
		return fault.Invalid("what %d items have taught is too much for one commit (%d bytes of at most %d): train on fewer rows, or with fewer bits",
			len(f.rows), size, maxFoundationBytes)
	}
	sp := f.space
	sp.ID, sp.Created = uint32(s.Counters.NextSpace), spaces.Now()
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
	// What has changed since the view was taken has taught what it was then.
	gone := s.Changed
	if f.relearn != nil {
		gone = roaring.Or(gone, f.relearn)
	}
	departures := map[uint32]*codec.Departure{}
	for i, row := range f.rows {
		if !gone.Contains(row) {
			continue
		}
		d, err := record.Departure(v.Snap, cv.Descriptor, sp.Positions, row, codec.Lesson{Revision: sp.Revision, Codes: f.lessons[i]})
		if err != nil {
			return err
		}
		departures[row] = d
		if size += d.Bytes(); size > maxFoundationBytes {
			return fmt.Errorf("%w: too much of what collection %q was trained on has been overwritten meanwhile: try again", fault.ErrBusy, s.Name)
		}
	}
	left := s.Building()
	if left != nil && !left.LeftByTraining() {
		return fmt.Errorf("%w: collection %q: somebody wants space %d, which is being built: wait for it (reindex), or drop it", fault.ErrBusy, s.Name, left.ID)
	}
	// From here on the state changes. An error could only be that of a batch that is
	// too large, which is ruled out above.
	if left != nil {
		if err := tx.DropSpace(s, left); err != nil {
			return err
		}
		f.replaced = left.ID
	}
	made := state.NewSpaceState(s.ID, sp)
	first := &spaces.RevisionDescriptor{RevisionInfo: f.revision}
	first.Revision, first.Created = sp.Revision, sp.Created
	if err := tx.WriteRevisionDescriptor(made, first); err != nil {
		return err
	}
	made.Revisions = []*spaces.RevisionDescriptor{first}
	made.Numbers.Building, made.Numbers.Checkpoint = true, uint64(sp.Revision)
	made.Numbers.Activate = f.activate || s.Counters.ActiveSpace == 0
	for i, row := range f.rows {
		if d := departures[row]; d != nil {
			if err := tx.Depart(made, d); err != nil {
				return err
			}
			continue
		}
		tx.Learn(made, row, codec.Lesson{Revision: sp.Revision, Codes: f.lessons[i]}, true)
	}
	f.pending.Or(gone)
	f.pending.And(s.Having(sp.Positions))
	err := record.ByContainer(f.pending, func(container uint16, l codec.Layer) error {
		tx.Layers[string(codec.OnlineRowsKey(s.ID, sp.ID, codec.SetPending, container))] = l
		return nil
	})
	if err != nil {
		return err
	}
	made.Pending.B = f.pending
	s.Spaces = append(s.Spaces, made)
	s.Counters.NextSpace++
	s.Changed = nil
	tx.Committer.Touch(s)
	return nil
}
