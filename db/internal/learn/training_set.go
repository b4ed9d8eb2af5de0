package learn

import (
	"context"
	"errors"
	"iter"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

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

	err error // the error of the store that ended the last pass; nil: the model is to blame
}

// choose finds the rows to learn from by a method, and the modalities that any of them has. It
// returns the names of the other modalities. Methods that learn from labels take the rows that have
// some, and read all item records for that, without vectors; others take all rows with a vector.
// ErrInvalid: no row has a vector.
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
		return nil, fault.Invalid("train collection %q: %w: none has a vector of any modality", s.cv.Name, fit.ErrNoItems)
	case len(s.modalities) == 0:
		return nil, fault.Invalid("train collection %q: no labelled item has a vector of any modality: label items that have one, or learn without labels by another method", s.cv.Name)
	}
	return leftOut, nil
}

// labelled returns the rows with labels, or the first ones up to the limit.
func (s *trainingSet) labelled(ctx context.Context) (*roaring.Bitmap, error) {
	labelled := roaring.New()
	err := record.ForEach(s.v.Snap, codec.CollectionKey(codec.KindItem, s.cv.ID), func(key, value []byte) error {
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
		err := record.ForEachItem(s.v.Snap, s.cv.Descriptor, 0, func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
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
