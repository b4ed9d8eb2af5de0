package learn

import (
	"fmt"

	"github.com/fddhdb/fddhdb/model"
)

// The features of a linear map are as long as the vector. One vector of a broken
// exporter among many, a million times as long as the others, would be all that the
// sums of A and B know, or make A singular, and then nothing could be learned for as
// long as its item is there. Kernels have no such trouble: they see it as far away.

const (
	// maxLengthening is how many times as long as those of the items that have taught
	// features may be for their item to teach.
	maxLengthening = 1e4
	// maxGammas bounds their squared length where nobody has taught, as when everything
	// that was trained on has been deleted: gamma is what keeps A invertible, and of sums of
	// so many times as much the rounding is still less than a thousandth of it.
	maxGammas = 1e12
)

// outliers tells the items that must not teach.
type outliers struct {
	encoder *model.Encoder
	phi     [][]float32 // by modality; nil where the features have bounds
	limits  []float64   // of the squared length
}

func newOutliers(m *model.Model, s *model.Statistics) *outliers {
	o := &outliers{encoder: m.NewEncoder()}
	for t := range m.Modalities() {
		var phi []float32
		limit := 0.0
		if m.Map(t) != model.MapRBF {
			phi, limit = make([]float32, m.Features(t)), maxGammas*m.Gamma(t)
			if n := s.Items(t); n > 0 {
				limit = maxLengthening * maxLengthening * s.Trace(t) / float64(n)
			}
		}
		o.phi, o.limits = append(o.phi, phi), append(o.limits, limit)
	}
	return o
}

// has reports whether an item is one.
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

// tooLong says that items have been left out.
func tooLong(n int) string {
	return fmt.Sprintf("left out as their vectors are more than %g times as long as others, or far too long for gamma: %d", maxLengthening, n)
}
