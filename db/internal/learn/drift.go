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

// Data that changes moves away from the training data, and searches get worse without an error. Drift shows
// it, see report.Drift. A training measures the error of its projections on its own items, each left out
// (expected). An update measures it on the new items before these teach. A space that was learned without
// labels has no updates: its drift is measured on request.

const (
	driftItems = 256 // the largest sample
	driftLeast = 16  // the fewest items of a modality whose mean is worth telling
)

// DriftOf measures the drift of items in rows from the model of the space of cv, by labels that the training
// knew. It returns nil if the rows have too few such items, or the space was not trained here. It reads a
// sample spread evenly over the rows, in some milliseconds.
func DriftOf(ctx context.Context, v *state.View, cv *state.CollectionView,
	rows *roaring.Bitmap) (report.Drift, error) {
	sp := cv.Space
	items, err := sampleOf(ctx, v, cv, sp, rows)
	if err != nil {
		return nil, err
	}
	if sp.Learned.LabelFree() {
		offsets, n, err := sp.Learned.OffsetOf(items)
		return named(cv, sp, offsets, n), err
	}
	// The trained model knows nothing of a label that has grown in this update.
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

// expected returns, by name of the modality, the error of the projections of a space in training, on items of
// the training, each left out.
func (l *learned) expected(ctx context.Context, v *state.View,
	cv *state.CollectionView) (map[string]float64, error) {
	items, err := sampleOf(ctx, v, cv, l.space, l.set.rows)
	if err != nil {
		return nil, err
	}
	residuals, n, err := l.result.Model.ResidualOf(items, l.result.Statistics)
	return named(cv, l.space, residuals, n), err
}

// named returns the figures by name of the modality; figures of fewer than driftLeast items are left out.
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
func sampleOf(ctx context.Context, v *state.View, cv *state.CollectionView, sp *spaces.Space,
	rows *roaring.Bitmap) (items []model.Example, err error) {
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

// Drift returns the drift of the latest items. In a space learned from labels it is the drift that the latest
// update has measured; in another space Drift measures a sample of the items since the training. Nil: there
// is no measurement, or no items have come.
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

// LatestDrift returns the drift of the latest revision that has one; nil if none has.
func LatestDrift(revisions []*spaces.RevisionDescriptor) (d report.Drift) {
	for _, r := range revisions {
		if r.Drift != nil {
			d = r.Drift
		}
	}
	return d
}

// The features of a linear map grow with the vector. A vector of a broken exporter, a million times as long
// as the others, would outweigh all else in the sums A and B, or make A singular, and prevent learning until
// its item is deleted. RBF features are at most 1, so an rbf map has no such problem: it sees the vector as
// far away.

const (
	// maxLengthening bounds the length of features that may teach, as a multiple of the root mean square of
	// earlier lengths.
	maxLengthening = 1e4
	// maxGammas bounds their squared length, as a multiple of gamma, before any item has taught, as after a
	// deletion of all items. gamma keeps A invertible. The rounding of sums of so many gammas is still less
	// than a thousandth of gamma.
	maxGammas = 1e12
)

// outliers tells which items must not teach, as their features are too long. One goroutine at
// a time uses it.
type outliers struct {
	encoder *model.Encoder
	phi     [][]float32 // by modality of the model: scratch for features; nil for RBF, which is bounded
	limits  []float64   // by modality: the largest squared length of features that may teach
}

// newOutliers returns the outliers for updates of statistics s of model m. It keeps neither.
func newOutliers(m *model.Model, s *model.Statistics) *outliers {
	o := &outliers{encoder: m.NewEncoder()}
	for t := range m.Modalities() {
		var phi []float32
		limit := 0.0
		if m.Map(t) != model.MapRBF {
			phi, limit = make([]float32, m.Features(t)), maxGammas*m.Gamma(t)
			// The trace of A is the sum of the squared lengths of the n features that have taught.
			if n := s.Items(t); n > 0 {
				limit = maxLengthening * maxLengthening * s.Trace(t) / float64(n)
			}
		}
		o.phi, o.limits = append(o.phi, phi), append(o.limits, limit)
	}
	return o
}

// has reports whether an item is an outlier in any modality. A NaN makes it one.
func (o *outliers) has(item model.Example) (bool, error) {
	for t, x := range item.Vectors {
		phi := o.phi[t]
		if phi == nil || !x.Present() {
			continue
		}
		if err := o.encoder.MapVector(phi, t, x); err != nil {
			return false, err
		}
		squared := 0.0
		for _, v := range phi {
			squared += float64(v) * float64(v)
		}
		if !(squared <= o.limits[t]) {
			return true, nil
		}
	}
	return false, nil
}

// tooLong words, for Update.Reason, that n items were left out as outliers.
func tooLong(n int) string {
	return fmt.Sprintf("left out as their vectors are more than %g times as long as others, or far too long for gamma: %d", maxLengthening, n)
}
