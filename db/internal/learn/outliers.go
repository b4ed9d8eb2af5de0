package learn

import (
	"fmt"

	"github.com/fddhdb/fddhdb/model"
)

// The features of a linear map grow with the vector. A vector of a broken exporter, a million
// times as long as the others, would outweigh all else in the sums A and B, or make A singular.
// Nothing could be learned as long as its item is there. RBF features are at most 1, so a
// kernel has no such trouble: it sees the vector as far away.

const (
	// maxLengthening bounds the length of features that may teach: so many times the root
	// mean square of those that have taught.
	maxLengthening = 1e4
	// maxGammas bounds their squared length, as a multiple of gamma, while nothing has
	// taught, as after a deletion of all items. gamma keeps A invertible. The rounding of sums
	// of so many gammas is still less than a thousandth of gamma.
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
