package model

import (
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/internal/dense"
)

// A featureMap is phi of one modality. It is immutable.
//
// RBF (Liu, Wang, Cheung 2021): phi_j(x) = exp(-|x - a_j|^2 / sigma),
// with k training vectors as anchors and sigma the mean squared distance
// between two training vectors. Neither phi nor sigma changes when x and the
// anchors are centred and divided by sqrt(sigma); doing so in float64 before
// rounding to float32 keeps the cancellation in |x|^2 + |a|^2 - 2 x.a at the
// size of the data's spread instead of its distance from the origin, and keeps
// float32 from overflowing whatever the unit of the features. A feature is 0
// where it would be less than e^-87, which float32 does not hold: more than
// 9 sqrt(sigma) from the anchor.
//
// Linear: phi(x) = [x - mean, 1], k = dim+1. The last feature is the intercept.
type featureMap struct {
	kind    MapKind
	dim     int
	mean    []float64              // over the training items that have the modality
	sigma   float64                // RBF; 1 where it would be 0, see moments.sigma
	anchors *dense.Packed[float32] // RBF: k rows of dim, (a - mean) / sqrt(sigma)

	scale float64   // 1 / sqrt(sigma); 1 for linear
	norms []float32 // |anchor|^2
}

func linearMap(mean []float64) *featureMap {
	return &featureMap{kind: MapLinear, dim: len(mean), mean: mean, scale: 1}
}

// rbfMap takes k anchors as they are in the model, centred and scaled, row by row.
func rbfMap(mean []float64, sigma float64, anchors []float32) *featureMap {
	d := len(mean)
	k := len(anchors) / d
	f := &featureMap{
		kind: MapRBF, dim: d, mean: mean, sigma: sigma,
		anchors: dense.Pack(dense.Of(k, d, anchors)),
		scale:   1 / math.Sqrt(sigma),
		norms:   make([]float32, k),
	}
	for j := range f.norms {
		f.norms[j] = float32(squaredNorm(anchors[j*d : (j+1)*d]))
	}
	return f
}

// size returns k, the number of features.
func (f *featureMap) size() int {
	if f.kind == MapLinear {
		return f.dim + 1
	}
	return len(f.norms)
}

// centre writes (x - mean) / sqrt(sigma) to dst. Only what is beyond float32
// is infinite.
func (f *featureMap) centre(dst, x []float32) {
	mean := f.mean[:len(x)]
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32((float64(v) - mean[i]) * f.scale)
	}
}

// farAway is the squared norm, in units of sigma, beyond which a vector is far
// from every anchor: those of n training vectors lie within sqrt(n/2) of the
// mean. It also keeps the float32 products from overflowing.
const farAway = 1e18

// mapRows is how many vectors are mapped at a time: their features are in the
// cache from their products with the anchors to the last thing done with them.
const mapRows = 64

// A mapScratch is the memory that apply needs: the centred vectors.
type mapScratch []float32

func (s *mapScratch) grow(n int) {
	if len(*s) < n {
		*s = make([]float32, n)
	}
}

// apply writes phi of the vectors to phi, size() numbers each, row by row. The
// features of a vector are the same, to the last bit, alone and among others.
func (f *featureMap) apply(phi []float32, xs [][]float32, s *mapScratch) {
	k, d := f.size(), f.dim
	if f.kind == MapLinear {
		for i, x := range xs {
			row := phi[i*k : (i+1)*k]
			f.centre(row[:d], x)
			for j, v := range row[:d] { // a difference may be beyond float32
				row[j] = min(max(v, -math.MaxFloat32), math.MaxFloat32)
			}
			row[d] = 1
		}
		return
	}
	s.grow(min(len(xs), mapRows) * d)
	for len(xs) > 0 {
		n := min(len(xs), mapRows)
		c := dense.Of(n, d, *s)
		for i, x := range xs[:n] {
			f.centre(c.Data[i*d:(i+1)*d], x)
		}
		dense.MulNT(dense.Of(n, k, phi), c, f.anchors)
		for i := range n {
			row := phi[i*k : (i+1)*k]
			if norm := squaredNorm(c.Data[i*d : (i+1)*d]); norm < farAway {
				dense.Gaussian(row, row, float32(norm), f.norms, 1)
			} else {
				clear(row)
			}
		}
		phi, xs = phi[n*k:], xs[n:]
	}
}

// applyAll is apply on many goroutines; scratch has one entry for each.
func (f *featureMap) applyAll(phi []float32, xs [][]float32, scratch []mapScratch) {
	k := f.size()
	chunks(len(scratch), len(xs), mapRows, func(worker, from, to int) {
		f.apply(phi[from*k:to*k], xs[from:to], &scratch[worker])
	})
}

func squaredNorm(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
		x = x[4:]
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

// moments accumulates mean and spread of the vectors of a modality in one pass
// (Welford's update, which loses nothing when the mean is far from zero and
// gives exactly no spread for a constant).
type moments struct {
	n    int
	mean []float64
	m2   []float64 // sum of (x - mean)^2, over momentColumns columns each
}

// momentColumns is how many columns are summed together, by one goroutine.
const momentColumns = 64

func newMoments(dim int) *moments {
	return &moments{mean: make([]float64, dim), m2: make([]float64, (dim+momentColumns-1)/momentColumns)}
}

// add takes vectors. The sums are the same for any number of workers.
func (m *moments) add(xs [][]float32, workers int) {
	chunks(workers, len(m.mean), momentColumns, func(_, from, to int) {
		mean, m2 := m.mean[from:to], &m.m2[from/momentColumns]
		var s0, s1 float64 // two sums: an addition has to wait for that before it
		for r, x := range xs {
			inv := 1 / float64(m.n+r+1)
			x := x[from:to]
			mean := mean[:len(x)]
			for i, v := range x {
				v := float64(v)
				d := v - mean[i]
				e := mean[i] + d*inv
				mean[i] = e
				s0, s1 = s1, s0+d*(v-e)
			}
		}
		*m2 += s0 + s1
	})
	m.n += len(xs)
}

// sigma returns the mean squared distance between two vectors, over all n^2
// ordered pairs: 2 (mean|x|^2 - |mean x|^2), which is twice the mean squared
// distance from the mean, without a pair being formed.
//
// Vectors that are all equal have none; the map then uses 1 and constant is
// true. Such a modality says nothing about the labels, but the others can
// still be learned: its features are 1 for that vector and fall to 0 away from
// it, and the report says that it is constant.
func (m *moments) sigma() (sigma float64, constant bool) {
	for _, v := range m.m2 {
		sigma += v
	}
	sigma *= 2 / float64(m.n)
	if !(sigma > 1e-300) {
		return 1, true
	}
	return sigma, false
}

// checkVector refuses what is no vector of the modality.
func checkVector(m Modality, x []float32) error {
	if len(x) != m.Dim {
		return &DimensionError{Modality: m.Name, Got: len(x), Want: m.Dim}
	}
	// The sum of v-v is 0 for finite numbers and NaN else. One test at the end
	// costs less than one an element; four sums do not wait for one another.
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		v := (*[4]float32)(x[i:])
		s0 += v[0] - v[0]
		s1 += v[1] - v[1]
		s2 += v[2] - v[2]
		s3 += v[3] - v[3]
	}
	for _, v := range x[i:] {
		s0 += v - v
	}
	if (s0+s1)+(s2+s3) == 0 {
		return nil
	}
	for i, v := range x {
		if v-v != 0 {
			return fmt.Errorf("modality %q, dimension %d is %v: %w: replace it or leave the vector out", m.Name, i, v, ErrNotFinite)
		}
	}
	return nil
}
