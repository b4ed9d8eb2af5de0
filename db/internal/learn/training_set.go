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

// trainingSet is the model.Source of the labelled items of a view.
type trainingSet struct {
	v          *state.View
	cv         *state.CollectionView
	limit      int
	modalities []int           // of the collection, that some labelled item has; see choose
	rows       *roaring.Bitmap // that are trained on; see choose
	err        error           // that ended the last pass, if the store is to blame
}

// choose decides on the modalities to train with and returns the names of the
// others. Where no item is labelled all are kept, and training says what is
// wrong.
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
