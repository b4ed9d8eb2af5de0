package model

import (
	"fmt"
	"math"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A featureMap is phi of one modality. It is immutable.
//
// RBF (Liu, Wang, Cheung 2021): phi_j(x) = exp(-|x - a_j|^2 / sigma),
// with k training vectors as anchors and sigma the mean squared distance
// between two training vectors. Neither phi nor sigma changes when x and the
// anchors are centred and divided by sqrt(sigma); doing so in float64 before
// rounding to float32 keeps the cancellation in |x|^2 + |a|^2 - 2 x.a at the
// size of the data's spread instead of its distance from the origin, and keeps
// float32 from overflowing whatever the unit of the features.
//
// Linear: phi(x) = [x - mean, 1], k = dim+1. The last feature is the intercept.
type featureMap struct {
	kind    MapKind
	dim     int
	mean    []float64 // over the training items that have the modality
	sigma   float64   // RBF; 1 where it would be 0, see moments.sigma
	anchors []float32 // RBF: k rows of dim, (a - mean) / sqrt(sigma)

	scale float64   // 1 / sqrt(sigma)
	norms []float64 // |anchor|^2
}

func linearMap(mean []float64) *featureMap {
	return &featureMap{kind: MapLinear, dim: len(mean), mean: mean}
}

// rbfMap takes k anchors as they are in the model: centred and scaled.
func rbfMap(mean []float64, sigma float64, anchors []float32) *featureMap {
	f := &featureMap{
		kind: MapRBF, dim: len(mean), mean: mean, sigma: sigma, anchors: anchors,
		scale: 1 / math.Sqrt(sigma),
		norms: make([]float64, len(anchors)/len(mean)),
	}
	for j := range f.norms {
		f.norms[j] = squaredNorm(anchors[j*f.dim : (j+1)*f.dim])
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

// centre writes (x - mean) / sqrt(sigma) to dst.
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

// A mapScratch is the memory that apply needs, for maps up to a size.
type mapScratch struct {
	x    []float32 // the centred vector, aligned
	dots []float32 // its products with the anchors
}

func (s *mapScratch) grow(f *featureMap) {
	if len(s.x) < f.dim {
		s.x = aligned(f.dim)
	}
	if len(s.dots) < len(f.norms) {
		s.dots = make([]float32, len(f.norms))
	}
}

// aligned returns n zeros that start on a 16-byte boundary. The float32 dot
// product of gonum first goes to such a boundary of its right operand, the
// vector here, so the order in which it sums depends on the address: with any
// other memory the same x would have another phi, in the last bits, from one
// encoder to the next. (The float64 kernels have no such step.)
func aligned(n int) []float32 {
	x := make([]float32, n+3)
	for uintptr(unsafe.Pointer(&x[0]))%16 != 0 {
		x = x[1:]
	}
	return x[:n:n]
}

// apply writes phi(x) to phi; len(phi) is size(), len(x) is dim. It is the one
// place where phi is computed, a vector at a time, so the phi of training and
// that of a query are equal to the last bit.
func (f *featureMap) apply(phi []float64, x []float32, s *mapScratch) {
	if f.kind == MapLinear {
		for i, v := range x {
			phi[i] = float64(v) - f.mean[i]
		}
		phi[f.dim] = 1
		return
	}
	k := len(f.norms)
	c, dots := s.x[:f.dim], s.dots[:k]
	f.centre(c, x)
	norm := squaredNorm(c)
	phi = phi[:k]
	if !(norm < farAway) {
		clear(phi)
		return
	}
	blas32.Gemv(blas.NoTrans, 1,
		blas32.General{Rows: k, Cols: f.dim, Stride: f.dim, Data: f.anchors},
		blas32.Vector{N: f.dim, Inc: 1, Data: c}, 0,
		blas32.Vector{N: k, Inc: 1, Data: dots})
	for j, dot := range dots {
		d := norm + f.norms[j] - 2*float64(dot)
		switch {
		case d <= 0: // x is the anchor, up to rounding
			phi[j] = 1
		case d < 700:
			phi[j] = math.Exp(-d)
		default: // too far for float64
			phi[j] = 0
		}
	}
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
	m2   float64 // sum of |x - mean|^2
}

func (m *moments) add(x []float32) {
	m.n++
	inv := 1 / float64(m.n)
	for i, v := range x {
		d := float64(v) - m.mean[i]
		m.mean[i] += d * inv
		m.m2 += d * (float64(v) - m.mean[i])
	}
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
	sigma = 2 * m.m2 / float64(m.n)
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
	// The sum of v-v is 0 for finite numbers and NaN else; one test at the end
	// costs the encoder less than one an element.
	var s float32
	for _, v := range x {
		s += v - v
	}
	if s == 0 {
		return nil
	}
	for i, v := range x {
		if v-v != 0 {
			return fmt.Errorf("modality %q, dimension %d is %v: %w: replace it or leave the vector out", m.Name, i, v, ErrNotFinite)
		}
	}
	return nil
}

// applyRows maps each row of x; scratch has one entry a worker.
func (f *featureMap) applyRows(phi []float64, x []float32, scratch []mapScratch) {
	k := f.size()
	for i := range scratch {
		scratch[i].grow(f)
	}
	parallel(len(scratch), len(x)/f.dim, func(worker, i int) {
		f.apply(phi[i*k:(i+1)*k], x[i*f.dim:(i+1)*f.dim], &scratch[worker])
	})
}
