package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// FeatureKind is the transformation of a vector before the map of its modality: in
// training, in queries and for stored items alike. Vectors of a sparse modality keep
// their zeros: there zscore only divides by the deviation, and log is log(1 + x_j /
// eps_j). Both differ from the dense features by a constant in each dimension, which no
// map can see.
type FeatureKind uint8

const (
	FeaturesRaw         FeatureKind = iota // x
	FeaturesZScore                         // (x_j - mean_j) / deviation_j, by column
	FeaturesHellinger                      // sqrt(x_j); below 0 counts as 0
	FeaturesLog                            // log(x_j + eps_j), eps_j a thousandth of the column's deviation; below 0 counts as 0
	FeaturesL2                             // x / |x|; a zero vector stays
	FeaturesHellingerL2                    // hellinger, then l2
)

var featureNames = []string{"raw", "zscore", "hellinger", "log", "l2", "hellinger-l2"}

func (k FeatureKind) String() string { return nameOf(featureNames, int(k), "features") }

// MarshalText writes the name, for reports.
func (k FeatureKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *FeatureKind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseFeatureKind(string(b))
	return err
}

// ParseFeatureKind returns the features with this name: raw, zscore, hellinger, log, l2
// or hellinger-l2.
func ParseFeatureKind(s string) (FeatureKind, error) {
	if i := slices.Index(featureNames, s); i >= 0 {
		return FeatureKind(i), nil
	}
	return 0, fmt.Errorf("%w: features %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2", ErrOption, s)
}

// fits reports whether the features are defined for the training vectors. Square roots
// and logarithms are not defined for negative numbers.
func (k FeatureKind) fits(m *moments) bool {
	switch k {
	case FeaturesHellinger, FeaturesLog, FeaturesHellingerL2:
		return m.lowest() >= 0
	}
	return true
}

// logScale is eps of FeaturesLog as a share of the deviation of the column. It is small
// against the numbers of the column, but large enough for zeros not to become outliers.
const logScale = 1e-3

// features are a FeatureKind with its parameters from the training vectors. They are
// immutable.
type features struct {
	kind  FeatureKind // mean of zscore, nil for sparse vectors; eps of log; by column
	shift []float64   // zscore: 1 / deviation, by column
	scale []float64   // zscore: 1 / deviation
}

// newFeatures takes parameters from the moments of the vectors before features are
// applied. A constant column has deviation 1.
func newFeatures(kind FeatureKind, m *moments) *features {
	f := &features{kind: kind}
	switch kind {
	case FeaturesZScore:
		f.scale = make([]float64, len(m.mean))
		if !m.sparse {
			f.shift = m.mean
		}
		for j := range f.scale {
			f.scale[j] = 1 / m.deviation(j)
		}
	case FeaturesLog:
		f.shift = make([]float64, len(m.mean))
		for j := range f.shift {
			f.shift[j] = logScale * m.deviation(j)
		}
	}
	return f
}

// apply writes the features of v to dst. dst has the length of v.Value and may be it.
// The features are finite. Those of a sparse vector have the same indices.
func (f *features) apply(dst []float32, v Vector) {
	x := v.Value
	dst = dst[:len(x)]
	if v.IsSparse() && f.applySparse(dst, v) {
		return
	}
	switch f.kind {
	case FeaturesRaw:
		copy(dst, x)
	case FeaturesZScore:
		for j, v := range x {
			z := (float64(v) - f.shift[j]) * f.scale[j]
			dst[j] = float32(min(max(z, -math.MaxFloat32), math.MaxFloat32))
		}
	case FeaturesHellinger:
		for j, v := range x {
			dst[j] = float32(math.Sqrt(float64(max(v, 0))))
		}
	case FeaturesLog:
		for j, v := range x {
			dst[j] = float32(math.Log(float64(max(v, 0)) + f.shift[j]))
		}
	case FeaturesL2:
		normalise(dst, x)
	case FeaturesHellingerL2:
		for j, v := range x {
			dst[j] = float32(math.Sqrt(float64(max(v, 0))))
		}
		normalise(dst, dst)
	}
}

// applySparse writes the features of a sparse vector to dst and returns true. It
// returns false if they are computed from the values as for a dense vector.
func (f *features) applySparse(dst []float32, v Vector) bool {
	switch f.kind {
	case FeaturesZScore:
		for e, j := range v.Index {
			z := float64(v.Value[e]) * f.scale[j]
			dst[e] = float32(min(max(z, -math.MaxFloat32), math.MaxFloat32))
		}
	case FeaturesLog:
		for e, j := range v.Index {
			dst[e] = float32(math.Log1p(float64(max(v.Value[e], 0)) / f.shift[j]))
		}
	default:
		return false
	}
	return true
}

// applyAll replaces the vectors by their features, on GOMAXPROCS goroutines.
func (f *features) applyAll(xs []Vector) {
	if f.kind == FeaturesRaw {
		return
	}
	chunks(workerCount(), len(xs), mapRows, func(_, from, to int) {
		for _, x := range xs[from:to] {
			f.apply(x.Value, x)
		}
	})
}

// normalise writes x / |x| to dst.
func normalise(dst, x []float32) {
	norm := math.Sqrt(dense.SquaredNorm(x))
	if norm == 0 {
		norm = 1
	}
	for j, v := range x {
		dst[j] = float32(float64(v) / norm)
	}
}
