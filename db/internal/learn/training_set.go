package learn

import (
	"context"
	"errors"
	"iter"

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

// trainingSet is the model.Source of a training: the labelled items of a view, in the order of
// rows. It belongs to the goroutine that trains. The caller keeps the view for as long.
type trainingSet struct {
	v     *state.View
	cv    *state.CollectionView // the collection in v
	limit int                   // train on the first so many labelled items; 0: on all

	// choose sets these, once, before the first pass.
	modalities []int           // positions in the collection of the modalities to train with, ascending
	rows       *roaring.Bitmap // the rows to train on

	err error // the error of the store that ended the last pass; nil: the model is to blame
}

// choose finds the labelled rows and the modalities that any of them has. It returns the names
// of the other modalities. If no item is labelled it keeps all modalities, and model.Train
// says that labels are missing. It reads all item records, without vectors. ErrInvalid: no
// labelled item has a vector.
func (s *trainingSet) choose(ctx context.Context) (leftOut []string, err error) {
	labelled := roaring.New()
	s.rows = labelled
	err = record.ForEach(s.v.Snap, codec.CollectionKey(codec.KindItem, s.cv.ID), func(key, value []byte) error {
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
	if err != nil && !errors.Is(err, record.ErrStopped) {
		return nil, err
	}
	for t, m := range s.cv.Modalities {
		if labelled.IsEmpty() || s.cv.Presence[t].Intersects(labelled) {
			s.modalities = append(s.modalities, t)
		} else {
			leftOut = append(leftOut, m.Name)
		}
	}
	if len(s.modalities) == 0 {
		return nil, fault.Invalid("train collection %q: no labelled item has a vector of any modality", s.cv.Name)
	}
	return leftOut, nil
}

// Examples yields the labelled items, as model.Source asks: one vector for each of modalities,
// and labels by id. Each call is a pass over the snapshot. An example is valid until the next
// one. An error of the store ends the pass and is kept in err.
//
// It ignores ctx: model.Train looks at that after each block of examples.
func (s *trainingSet) Examples(ctx context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		n := 0
		chosen := make([]model.Vector, len(s.modalities))
		err := record.ForEachItem(s.v.Snap, s.cv.Descriptor, 0, func(_ uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
			if len(rec.Labels) == 0 {
				return nil
			}
			for i, t := range s.modalities {
				chosen[i] = vectors[t]
			}
			if !yield(model.Example{Vectors: chosen, Labels: rec.Labels}, nil) {
				return record.ErrStopped
			}
			if n++; n == s.limit {
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
