package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// FeatureKind is the transformation of a vector before the map of its modality: in
// training, in queries and for stored items alike. Vectors of a sparse modality keep
// their zeros: there zscore only divides by the deviation, and log is log(1 + x_j /
// eps_j). Both differ from the dense features by a constant in each dimension, which no
// map can see.
type FeatureKind uint8

const (
	FeaturesRaw       FeatureKind = iota // x
	FeaturesZScore                       // (x_j - mean_j) / deviation_j, by column
	FeaturesHellinger                    // sqrt(x_j); below 0 counts as 0
	// log(x_j + eps_j), eps_j a thousandth of the column's deviation; below 0 counts as 0
	FeaturesLog
	FeaturesL2          // x / |x|; a zero vector stays
	FeaturesHellingerL2 // hellinger, then l2
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
	return 0, fmt.Errorf("%w: features %q: they are raw, zscore, hellinger, log, l2 or hellinger-l2",
		ErrOption, s)
}

// Fits reports whether the features are defined for the training vectors. Square roots
// and logarithms are not defined for negative numbers.
func (k FeatureKind) Fits(m *Moments) bool {
	switch k {
	case FeaturesHellinger, FeaturesLog, FeaturesHellingerL2:
		return m.Lowest() >= 0
	}
	return true
}

// logScale is eps of FeaturesLog as a share of the deviation of the column. It is small
// against the numbers of the column, but large enough for zeros not to become outliers.
const logScale = 1e-3

// farthest bounds the features of zscore of dense vectors. A column that hardly varied among the training
// vectors, such as a rare colour, otherwise takes a vector so far from all of them that it has no code.
const farthest = 32

// Features are a FeatureKind with its parameters from the training vectors. They are
// immutable.
type Features struct {
	Kind  FeatureKind // mean of zscore, nil for sparse vectors; eps of log; by column
	Shift []float64   // zscore: 1 / deviation, by column
	Scale []float64   // zscore: 1 / deviation
}

// NewFeatures takes parameters from the moments of the vectors before features are
// applied. A constant column has deviation 1.
func NewFeatures(kind FeatureKind, m *Moments) *Features {
	f := &Features{Kind: kind}
	switch kind {
	case FeaturesZScore:
		f.Scale = make([]float64, len(m.Mean))
		if !m.sparse {
			f.Shift = m.Mean
		}
		for j := range f.Scale {
			f.Scale[j] = 1 / m.deviation(j)
		}
	case FeaturesLog:
		f.Shift = make([]float64, len(m.Mean))
		for j := range f.Shift {
			f.Shift[j] = logScale * m.deviation(j)
		}
	}
	return f
}

// Apply writes the features of v to dst. dst has the length of v.Value and may be it. The features are
// finite. The features of a sparse vector have its indices.
func (f *Features) Apply(dst []float32, v Vector) {
	x := v.Value
	dst = dst[:len(x)]
	if v.IsSparse() && f.applySparse(dst, v) {
		return
	}
	switch f.Kind {
	case FeaturesRaw:
		copy(dst, x)
	case FeaturesZScore:
		for j, v := range x {
			z := (float64(v) - f.Shift[j]) * f.Scale[j]
			dst[j] = float32(min(max(z, -farthest), farthest))
		}
	case FeaturesHellinger:
		for j, v := range x {
			dst[j] = float32(math.Sqrt(float64(max(v, 0))))
		}
	case FeaturesLog:
		for j, v := range x {
			dst[j] = float32(log(float64(max(v, 0)) + f.Shift[j]))
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
func (f *Features) applySparse(dst []float32, v Vector) bool {
	switch f.Kind {
	case FeaturesZScore:
		for e, j := range v.Index {
			z := float64(v.Value[e]) * f.Scale[j]
			dst[e] = float32(min(max(z, -math.MaxFloat32), math.MaxFloat32))
		}
	case FeaturesLog:
		for e, j := range v.Index {
			dst[e] = float32(log1p(float64(max(v.Value[e], 0)) / f.Shift[j]))
		}
	default:
		return false
	}
	return true
}

// log returns ln x for x > 0, within 2 ulp, with the same bits on all processors: math.Log has
// fused operations on some. With x = 2^k m and s = (m-1)/(m+1), ln x = k ln 2 + 2 s + 2 s^3/3 + 2 s^5/5 and
// so on, where sqrt(1/2) <= m < sqrt(2).
func log(x float64) float64 {
	if x == 0 || x > math.MaxFloat64 {
		return math.Log(x)
	}
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		k--
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for n := 23; n >= 3; n -= 2 {
		sum = float64(z * (sum + 1/float64(n)))
	}
	return float64(float64(k)*math.Ln2) + 2*(s+float64(s*sum))
}

// log1p returns ln(1+x) for x >= 0 (W. Kahan, in the HP-15C manual, 1982).
func log1p(x float64) float64 {
	u := 1 + x
	if u == 1 || u > math.MaxFloat64 {
		return x
	}
	return log(u) * (x / (u - 1))
}

// ApplyAll replaces the vectors by their features, on GOMAXPROCS goroutines.
func (f *Features) ApplyAll(xs []Vector) {
	if f.Kind == FeaturesRaw {
		return
	}
	parallel.Chunks(parallel.Workers(), len(xs), parallel.Rows, func(_, from, to int) {
		for _, x := range xs[from:to] {
			f.Apply(x.Value, x)
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

// Moments accumulate mean, spread and least number of each column of the vectors of a
// modality, in one pass. They use Welford's update, which loses nothing if the mean is
// far from zero, and gives exactly no spread for a constant.
type Moments struct {
	N      int       // vectors
	Mean   []float64 // by column
	m2     []float64 // by column: sum of (x - mean)^2
	low    []float32 // by column: least number
	sparse bool

	// Of sparse vectors, until settle: the vectors that have a number in a column.
	// mean, m2 and low cover these numbers alone until then, so that adding a vector
	// costs only the numbers that it holds.
	count []int
}

// momentColumns is the number of columns that one goroutine sums together.
const momentColumns = 64

// NewMoments returns the moments of no vectors.
func NewMoments(mod Modality) *Moments {
	m := &Moments{
		Mean: make([]float64, mod.Dim), m2: make([]float64, mod.Dim),
		low: slices.Repeat([]float32{math.MaxFloat32}, mod.Dim), sparse: mod.Sparse,
	}
	if mod.Sparse {
		m.count = make([]int, mod.Dim)
	}
	return m
}

// Add adds vectors in the form of the modality. The sums are the same for any number of
// workers.
func (m *Moments) Add(xs []Vector, workers int) {
	if m.sparse {
		m.addSparse(xs)
		return
	}
	parallel.Chunks(workers, len(m.Mean), momentColumns, func(_, from, to int) {
		mean, m2, low := m.Mean[from:to], m.m2[from:to], m.low[from:to]
		for r, x := range xs {
			inv := 1 / float64(m.N+r+1)
			x := x.Value[from:to]
			mean, m2, low := mean[:len(x)], m2[:len(x)], low[:len(x)]
			for i, v := range x {
				if v < low[i] {
					low[i] = v
				}
				v := float64(v)
				d := v - mean[i]
				e := mean[i] + d*inv
				mean[i] = e
				m2[i] += d * (v - e)
			}
		}
	})
	m.N += len(xs)
}

// addSparse is add for sparse vectors. It sees the numbers that are there; settle adds the
// zeros.
func (m *Moments) addSparse(xs []Vector) {
	for _, x := range xs {
		for e, j := range x.Index {
			v := x.Value[e]
			m.low[j] = min(m.low[j], v)
			m.count[j]++
			d := float64(v) - m.Mean[j]
			m.Mean[j] += d / float64(m.count[j])
			m.m2[j] += d * (float64(v) - m.Mean[j])
		}
	}
	m.N += len(xs)
}

// Settle ends the adding of vectors. It merges the zeros of sparse vectors with the
// other numbers (Chan, Golub and LeVeque 1979; the zeros have no mean and no spread).
func (m *Moments) Settle() {
	for j, c := range m.count {
		zeros := float64(m.N - c)
		if c == m.N {
			continue
		}
		share := float64(c) / float64(m.N)
		m.m2[j] += m.Mean[j] * m.Mean[j] * share * zeros
		m.Mean[j] *= share
		m.low[j] = min(m.low[j], 0)
	}
	m.count = nil
}

// Lowest returns the least number of all columns.
func (m *Moments) Lowest() float32 { return slices.Min(m.low) }

// deviation returns the standard deviation of a column, or 1 if it is constant.
func (m *Moments) deviation(column int) float64 {
	if v := m.m2[column] / float64(m.N); v > 1e-300 {
		return math.Sqrt(v)
	}
	return 1
}

// Sigma returns the mean squared distance between two vectors, over all n^2 ordered
// pairs: 2 (mean|x|^2 - |mean x|^2). That is twice the mean squared distance from the
// mean, so no pair is formed.
//
// If all vectors are equal sigma is 1 and constant is true. Such a modality says
// nothing about the labels, but the others can still be learned. Its features are 1 for
// that vector and fall to 0 away from it. The report says that it is constant.
func (m *Moments) Sigma() (sigma float64, constant bool) {
	for _, v := range m.m2 {
		sigma += v
	}
	sigma *= 2 / float64(m.N)
	if !(sigma > 1e-300) {
		return 1, true
	}
	return sigma, false
}

// Merge adds the vectors of o, which must be disjoint from the vectors of m (Chan, Golub and LeVeque 1979).
func (m *Moments) Merge(o *Moments) {
	for j := range m.Mean {
		a, b := float64(m.N), float64(o.N)
		if m.sparse {
			a, b = float64(m.count[j]), float64(o.count[j])
			m.count[j] += o.count[j]
		}
		m.low[j] = min(m.low[j], o.low[j])
		switch n := a + b; {
		case b == 0:
		case a == 0:
			m.Mean[j], m.m2[j] = o.Mean[j], o.m2[j]
		default:
			d := o.Mean[j] - m.Mean[j]
			m.Mean[j] += d * (b / n)
			m.m2[j] += o.m2[j] + d*d*(a*b/n)
		}
	}
	m.N += o.N
}

// Reset forgets all vectors.
func (m *Moments) Reset() {
	*m = *NewMoments(Modality{Dim: len(m.Mean), Sparse: m.sparse})
}

// AppendTo writes the moments, which are not settled yet.
func (m *Moments) AppendTo(w *wire.Writer) {
	w.U64(uint64(m.N))
	w.F64s(m.Mean...)
	w.F64s(m.m2...)
	w.F32s(m.low)
	for _, c := range m.count {
		w.U64(uint64(c))
	}
}

// ReadFrom reads the output of AppendTo into m, replacing its contents.
func (m *Moments) ReadFrom(r *wire.Reader) {
	m.N = r.Number("the number of vectors")
	m.Mean, m.m2 = r.F64s(len(m.Mean), "means"), r.F64s(len(m.m2), "squares")
	m.low = r.F32s(len(m.low), "least numbers")
	for j := range m.count {
		m.count[j] = r.Number("the vectors with a number")
	}
}
