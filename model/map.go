package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A featureMap is phi of one modality. It is immutable, so goroutines share it.
//
// RBF (Liu, Wang, Cheung 2021): phi_j(x) = exp(-|x - a_j|^2 / sigma). The anchors a_j
// are k training vectors, and sigma is the mean squared distance between two training
// vectors, times a width. phi and sigma do not change when x and the anchors are centred and divided
// by sqrt(sigma). That is done in float64 before rounding to float32. It keeps the
// cancellation in |x|^2 +
// a|^2 - 2 x.a at the size of the data's spread instead of its distance from the origin,
// and keeps float32 from overflowing in any unit. A feature below e^-87, more than 9
// sqrt(sigma) from the anchor, is 0, as float32 does not hold it.
//
// Linear: phi(x) = [x - mean, 1], k = dim+1. The last feature is the intercept.
//
// RBF and linear: the features of RBF, then (x - mean) / sqrt(sigma/2), whose mean
// squared norm is 1, and the intercept.
//
// Here x is the vector after features has been applied. sparseMap does the same for
// sparse vectors.
type featureMap struct {
	kind     MapKind
	dim      int                    // dimensions of a vector
	features *features              // applied first
	mean     []float64              // over the training items that have the modality
	sigma    float64                // of RBF; 1 where it would be 0, see moments.sigma
	anchors  *dense.Packed[float32] // of RBF: k rows of dim, (a - mean) / sqrt(sigma)
	sparse   *sparseMap             // nil if vectors are dense; if not, anchors may be nil

	scale float64   // 1 / sqrt(sigma); 1 for linear
	norms []float32 // |anchor|^2
}

// linearMap takes the mean of the vectors, which the map subtracts.
func linearMap(mean []float64) *featureMap {
	return &featureMap{kind: MapLinear, dim: len(mean), features: new(features), mean: mean, scale: 1}
}

// newLinearMap returns the linear map of a modality: its features, less their mean, and the intercept.
func newLinearMap(mod Modality, features *features, mean []float64) *featureMap {
	f := linearMap(mean)
	if mod.Sparse {
		f = newSparseMap(MapLinear, mean, 1, csr{})
	}
	f.features = features
	return f
}

// zeroIntercept returns a projection of the features of a linear map, of so many rows, that
// does without the intercept: rows are its numbers for all others.
func zeroIntercept(rows []float64, bits int) (p []float64) {
	d := len(rows) / bits
	for row := range slices.Chunk(rows, d) {
		p = append(append(p, row...), 0)
	}
	return p
}

// rbfMap takes k anchors centred and scaled, row by row, as the model stores them.
func rbfMap(mean []float64, sigma float64, anchors []float32) *featureMap {
	d := len(mean)
	k := len(anchors) / d
	f := &featureMap{
		kind: MapRBF, dim: d, features: new(features), mean: mean, sigma: sigma,
		anchors: dense.Pack(dense.Of(k, d, anchors)),
		scale:   1 / math.Sqrt(sigma),
		norms:   make([]float32, k),
	}
	for j := range f.norms {
		f.norms[j] = float32(dense.SquaredNorm(anchors[j*d : (j+1)*d]))
	}
	return f
}

// newMap makes a map from the moments of features and from anchors, which are features
// too. A linear map needs no anchors, and has no width. prepared are these features; nil: vectors are
// given with features applied.
func newMap(kind MapKind, prepared *features, width float64, m *moments, anchors []Vector) *featureMap {
	if prepared == nil {
		prepared = new(features)
	}
	sigma, _ := m.sigma()
	sigma *= width
	if m.sparse {
		f := newSparseMap(kind, m.mean, sigma, csrOf(anchors))
		f.features = prepared
		return f
	}
	if kind == MapLinear {
		return newLinearMap(Modality{}, prepared, m.mean)
	}
	f := rbfMap(m.mean, sigma, nil) // no anchors yet, but it can centre them
	centred := make([]float32, len(anchors)*f.dim)
	for j, x := range anchors {
		f.centre(centred[j*f.dim:(j+1)*f.dim], x.Value)
	}
	f = rbfMap(m.mean, sigma, centred)
	f.kind, f.features = kind, prepared
	return f
}

// size returns k, the number of features.
func (f *featureMap) size() int { return f.kind.size(len(f.norms), f.dim) }

// size returns the number of features of a map of this kind with so many anchors and d
// dimensions.
func (k MapKind) size(anchors, d int) int {
	switch k {
	case MapLinear:
		return d + 1
	case MapRBFLinear:
		return anchors + d + 1
	}
	return anchors
}

// prepare writes the centred and scaled features of v to dst.
func (f *featureMap) prepare(dst []float32, v Vector) {
	if v.IsSparse() {
		scatter(dst, v)
		v = Dense(dst)
	}
	if f.features.kind != FeaturesRaw {
		f.features.apply(dst, v)
		v = Dense(dst)
	}
	f.centre(dst, v.Value)
}

// centre writes (x - mean) / sqrt(sigma) to dst. A number becomes infinite only if it
// is beyond float32.
func (f *featureMap) centre(dst, x []float32) {
	mean := f.mean[:len(x)]
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32((float64(v) - mean[i]) * f.scale)
	}
}

// farAway is the squared norm, in units of sigma, beyond which a vector is far from
// every anchor: n training vectors lie within sqrt(n/2) of the mean. It also keeps
// float32 products from overflowing.
const farAway = 1e18

// A mapScratch is the memory of apply, for one goroutine.
type mapScratch struct {
	centred []float32
	sparse  csr       // features of sparse vectors
	dots    []float64 // products of one of them with all anchors
}

func (s *mapScratch) grow(n int) {
	if len(s.centred) < n {
		s.centred = make([]float32, n)
	}
}

// apply writes phi of the vectors to phi, size() numbers each, row by row. A vector has
// the same features, to the last bit, alone and among others.
func (f *featureMap) apply(phi []float32, xs []Vector, s *mapScratch) {
	if f.sparse != nil {
		f.applySparse(phi, xs, s)
		return
	}
	k, d := f.size(), f.dim
	if f.kind == MapLinear {
		for i, x := range xs {
			row := phi[i*k : (i+1)*k]
			f.prepare(row[:d], x)
			linear(row, row[:d], 1)
		}
		return
	}
	anchors := len(f.norms)
	s.grow(min(len(xs), mapRows) * d)
	for len(xs) > 0 {
		n := min(len(xs), mapRows)
		c := dense.Of(n, d, s.centred)
		for i, x := range xs[:n] {
			f.prepare(c.Data[i*d:(i+1)*d], x)
		}
		dense.MulNT(dense.Matrix[float32]{Rows: n, Cols: anchors, Stride: k, Data: phi}, c, f.anchors)
		for i := range n {
			x, row := c.Data[i*d:(i+1)*d], phi[i*k:(i+1)*k]
			rbf := row[:anchors]
			if norm := dense.SquaredNorm(x); norm < farAway {
				dense.Gaussian(rbf, rbf, float32(norm), f.norms, 1)
			} else {
				clear(rbf)
			}
			if f.kind == MapRBFLinear {
				linear(row[anchors:], x, f.unit())
			}
		}
		phi, xs = phi[n*k:], xs[n:]
	}
}

// linear writes [scale x, 1] to row. x may be a part of row. A difference from the mean
// may be beyond float32.
func linear(row, x []float32, scale float32) {
	for j, v := range x {
		row[j] = min(max(scale*v, -math.MaxFloat32), math.MaxFloat32)
	}
	row[len(x)] = 1
}

// applyAll is apply on one goroutine for each element of scratch.
func (f *featureMap) applyAll(phi []float32, xs []Vector, scratch []mapScratch) {
	k := f.size()
	chunks(len(scratch), len(xs), mapRows, func(worker, from, to int) {
		f.apply(phi[from*k:to*k], xs[from:to], &scratch[worker])
	})
}

// MapKind is the kind of the feature map phi of a modality.
type MapKind uint8

const (
	MapRBF       MapKind = iota // phi_j(x) = exp(-|x - a_j|^2 / sigma) for k anchors a_j
	MapLinear                   // phi(x) = [x - mean, 1]
	MapRBFLinear                // both: [phi(x) of rbf, (x - mean) / sqrt(sigma/2), 1]
)

var mapNames = []string{"rbf", "linear", "rbf+linear"}

func (k MapKind) String() string { return nameOf(mapNames, int(k), "map") }

// MarshalText writes the name, for reports.
func (k MapKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *MapKind) UnmarshalText(b []byte) (err error) {
	*k, err = ParseMapKind(string(b))
	return err
}

// ParseMapKind returns the map with this name: rbf, linear or rbf+linear.
func ParseMapKind(s string) (MapKind, error) {
	if i := slices.Index(mapNames, s); i >= 0 {
		return MapKind(i), nil
	}
	return 0, fmt.Errorf("%w: map %q: it is rbf, linear or rbf+linear", ErrOption, s)
}
