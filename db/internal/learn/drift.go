package learn

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// Data that changes moves away from what a model was trained on, and searches get worse without an
// error. Drift shows it, see report.Drift. A training measures what its projections miss of its own
// items, each left out (expected); an update, what they miss of the items that came, before these teach.
// A space that was learned without labels has no updates, and is measured when somebody asks.

const (
	driftItems = 256 // the largest sample
	driftLeast = 16  // the fewest items of a modality whose mean is worth telling
)

// DriftOf measures the drift of items in rows from the model of the space of cv, by labels that the training
// knew. It is nil where nothing can be measured: the rows have too few such items, or the space was not
// trained here. It reads a sample spread evenly over the rows, in some milliseconds.
func DriftOf(ctx context.Context, v *state.View, cv *state.CollectionView, rows *roaring.Bitmap) (report.Drift, error) {
	sp := cv.Space
	items, err := sampleOf(ctx, v, cv, sp, rows)
	if err != nil {
		return nil, err
	}
	if sp.Learned.LabelFree() {
		offsets, n, err := sp.Learned.OffsetOf(items)
		return named(cv, sp, offsets, n), err
	}
	// Nothing has taught what a label means that has grown in this update.
	items = slices.DeleteFunc(items, func(it model.Example) bool { return !sp.Trained.Knows(it.Labels) })
	residuals, n, err := sp.Learned.ResidualOf(items, nil)
	var d report.Drift
	for name, r := range named(cv, sp, residuals, n) {
		if expected, known := trainedOn(cv).Expected[name]; known {
			if d == nil {
				d = report.Drift{}
			}
			d[name] = max(r-expected, 0)
		}
	}
	return d, err
}

// trainedOn returns the descriptor of revision 1, an empty one if that is lost.
func trainedOn(cv *state.CollectionView) *spaces.RevisionDescriptor {
	if len(cv.Revisions) == 0 || cv.Revisions[0].Revision != 1 {
		return &spaces.RevisionDescriptor{}
	}
	return cv.Revisions[0]
}

// expected returns, by name of the modality, what the projections of a space that is being trained miss of
// items of the training, each left out.
func (l *learned) expected(ctx context.Context, v *state.View, cv *state.CollectionView) (map[string]float64, error) {
	items, err := sampleOf(ctx, v, cv, l.space, l.set.rows)
	if err != nil {
		return nil, err
	}
	residuals, n, err := l.result.Model.ResidualOf(items, l.result.Statistics)
	return named(cv, l.space, residuals, n), err
}

// named returns figures by name of the modality, those that are of driftLeast items or more.
func named(cv *state.CollectionView, sp *spaces.Space, figures []float64, n []int) map[string]float64 {
	var all map[string]float64
	for i, x := range figures {
		if n[i] < driftLeast {
			continue
		}
		if all == nil {
			all = map[string]float64{}
		}
		all[cv.Modalities[sp.Positions[i]].Name] = x
	}
	return all
}

// sampleOf returns up to driftItems items, spread evenly over rows. Rows without an item are left out.
func sampleOf(ctx context.Context, v *state.View, cv *state.CollectionView, sp *spaces.Space, rows *roaring.Bitmap) (items []model.Example, err error) {
	features, err := record.NewFeatureReader(v.Snap, cv.Descriptor, 0)
	if err != nil {
		return nil, err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(cv.Modalities))
	for it := roaring.And(evenly(rows, driftItems), cv.Live).Iterator(); it.HasNext(); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := it.Next()
		rec, err := record.ReadItem(v.Snap, cv.ID, row)
		if err != nil {
			return nil, err
		}
		if err := features.Seek(vectors, row); err != nil {
			return nil, err
		}
		item := sp.Example(vectors, rec.Labels)
		for t, x := range item.Vectors { // Seek fills vectors again for the next row
			item.Vectors[t] = record.CloneVector(x)
		}
		items = append(items, item)
	}
	return items, nil
}

// Drift returns the drift of the items that came last: as the latest update has measured it that did, or of
// a space that was learned without labels of a sample of the items that have come since the training. Nil:
// nothing was measured, or none have come.
func Drift(ctx context.Context, v *state.View, cv *state.CollectionView) (report.Drift, error) {
	sp := cv.Space
	switch {
	case sp == nil:
		return nil, fmt.Errorf("%w: collection %q: train it first", fault.ErrNoModel, cv.Name)
	case sp.Learned == nil:
		return nil, fault.Invalid("collection %q learns no codes: it has no drift", cv.Name)
	case sp.HasStatistics():
		return LatestDrift(cv.Revisions), nil
	case cv.IndexOnly:
		return nil, cv.LacksVectors("to measure")
	}
	came := roaring.New()
	came.AddRange(trainedOn(cv).Rows, cv.NextRow)
	came.And(record.UnionOf(cv.Presence, sp.Positions))
	return DriftOf(ctx, v, cv, came)
}

// LatestDrift returns the drift of the latest revision that has one; nil: none has.
func LatestDrift(revisions []*spaces.RevisionDescriptor) (d report.Drift) {
	for _, r := range revisions {
		if r.Drift != nil {
			d = r.Drift
		}
	}
	return d
}
