package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

// A Map is phi of one modality. It is immutable, so goroutines share it.
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
type Map struct {
	kind     MapKind
	dim      int                    // dimensions of a vector
	features *Features              // applied first
	mean     []float64              // over the training items that have the modality
	sigma    float64                // of RBF; 1 where it would be 0, see moments.sigma
	anchors  *dense.Packed[float32] // of RBF: k rows of dim, (a - mean) / sqrt(sigma)
	sparse   *sparseMap             // nil if vectors are dense; if not, anchors may be nil

	scale float64   // 1 / sqrt(sigma); 1 for linear
	norms []float32 // |anchor|^2
}

// linearMap takes the mean of the vectors, which the map subtracts.
func linearMap(mean []float64) *Map {
	return &Map{kind: MapLinear, dim: len(mean), features: new(Features), mean: mean, scale: 1}
}

// NewLinearMap returns the linear map of a modality: its features, less their mean, and the intercept.
func NewLinearMap(mod Modality, features *Features, mean []float64) *Map {
	f := linearMap(mean)
	if mod.Sparse {
		f = newSparseMap(MapLinear, mean, 1, csr{})
	}
	f.features = features
	return f
}

// ZeroIntercept returns a projection of the features of a linear map, of so many rows, that
// does without the intercept: rows are its numbers for all others.
func ZeroIntercept(rows []float64, bits int) (p []float64) {
	d := len(rows) / bits
	for row := range slices.Chunk(rows, d) {
		p = append(append(p, row...), 0)
	}
	return p
}

// rbfMap takes k anchors centred and scaled, row by row, as the model stores them.
func rbfMap(mean []float64, sigma float64, anchors []float32) *Map {
	d := len(mean)
	k := len(anchors) / d
	f := &Map{
		kind: MapRBF, dim: d, features: new(Features), mean: mean, sigma: sigma,
		anchors: dense.Pack(dense.Of(k, d, anchors)),
		scale:   1 / math.Sqrt(sigma),
		norms:   make([]float32, k),
	}
	for j := range f.norms {
		f.norms[j] = float32(dense.SquaredNorm(anchors[j*d : (j+1)*d]))
	}
	return f
}

// NewMap makes a map from the moments of features and from anchors, which are features
// too. A linear map needs no anchors, and has no width. prepared are these features; nil: vectors are
// given with features applied.
func NewMap(kind MapKind, prepared *Features, width float64, m *Moments, anchors []Vector) *Map {
	if prepared == nil {
		prepared = new(Features)
	}
	sigma, _ := m.Sigma()
	sigma *= width
	if m.sparse {
		f := newSparseMap(kind, m.Mean, sigma, csrOf(anchors))
		f.features = prepared
		return f
	}
	if kind == MapLinear {
		return NewLinearMap(Modality{}, prepared, m.Mean)
	}
	f := rbfMap(m.Mean, sigma, nil) // no anchors yet, but it can centre them
	centred := make([]float32, len(anchors)*f.dim)
	for j, x := range anchors {
		f.centre(centred[j*f.dim:(j+1)*f.dim], x.Value)
	}
	f = rbfMap(m.Mean, sigma, centred)
	f.kind, f.features = kind, prepared
	return f
}

// Size returns k, the number of features.
func (f *Map) Size() int { return f.kind.Size(len(f.norms), f.dim) }

// Size returns the number of features of a map of this kind with so many anchors and d
// dimensions.
func (k MapKind) Size(anchors, d int) int {
	switch k {
	case MapLinear:
		return d + 1
	case MapRBFLinear:
		return anchors + d + 1
	}
	return anchors
}

// Prepare writes the centred and scaled features of v to dst.
func (f *Map) Prepare(dst []float32, v Vector) {
	if v.IsSparse() {
		scatter(dst, v)
		v = Dense(dst)
	}
	if f.features.Kind != FeaturesRaw {
		f.features.Apply(dst, v)
		v = Dense(dst)
	}
	f.centre(dst, v.Value)
}

// centre writes (x - mean) / sqrt(sigma) to dst. A number becomes infinite only if it
// is beyond float32.
func (f *Map) centre(dst, x []float32) {
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

// A MapScratch is the memory of apply, for one goroutine.
type MapScratch struct {
	centred []float32
	sparse  csr       // features of sparse vectors
	dots    []float64 // products of one of them with all anchors
}

func (s *MapScratch) grow(n int) {
	if len(s.centred) < n {
		s.centred = make([]float32, n)
	}
}

// apply writes phi of the vectors to phi, size() numbers each, row by row. A vector has
// the same features, to the last bit, alone and among others.
func (f *Map) apply(phi []float32, xs []Vector, s *MapScratch) {
	if f.sparse != nil {
		f.applySparse(phi, xs, s)
		return
	}
	k, d := f.Size(), f.dim
	if f.kind == MapLinear {
		for i, x := range xs {
			row := phi[i*k : (i+1)*k]
			f.Prepare(row[:d], x)
			linear(row, row[:d], 1)
		}
		return
	}
	anchors := len(f.norms)
	s.grow(min(len(xs), parallel.Rows) * d)
	for len(xs) > 0 {
		n := min(len(xs), parallel.Rows)
		c := dense.Of(n, d, s.centred)
		for i, x := range xs[:n] {
			f.Prepare(c.Data[i*d:(i+1)*d], x)
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

// ApplyAll is apply on one goroutine for each element of scratch.
func (f *Map) ApplyAll(phi []float32, xs []Vector, scratch []MapScratch) {
	k := f.Size()
	parallel.Chunks(len(scratch), len(xs), parallel.Rows, func(worker, from, to int) {
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

// A sparseMap replaces the anchors of a Map if vectors are sparse. Centring
// would fill the vectors, so the mean is taken out of the products instead.
//
// RBF: products with the anchors come from the layout that costs less; see packs. The choice depends on the
// anchors alone, so a model has the same features wherever it is read.
//
//   - Packed. With m, x and a divided by sqrt(sigma),
//     |x - a|^2 = |x - m|^2 + (|a - m|^2 + 2 m.(a - m)) - 2 x.(a - m). The first term is a constant of
//     the row and the second one of the anchor, both summed in float64. The products are of a sparse row
//     and dense rows a - m. The terms that cancel have the size of the spread, as with dense vectors.
//
//   - Lists. For each column, the anchors that have a number in it; and |x|^2 + |a|^2 -
//     2 x.a in float64, where the cancellation does not matter.
//
// Linear, and the linear part of RBF and linear: the features of dense vectors, bit for bit. They are the
// features of the zero vector except where x has a number. Copying k numbers an item takes little beside the
// k^2/2 multiplications that follow, so keeping x sparse here would gain nothing.
type sparseMap struct {
	anchors csr         // of training vectors, with features applied, neither centred nor scaled
	lists   anchorLists // by column; without columns if the anchors are packed
	squares []float64   // |anchor|^2, for lists
	mean    []float64   // mean / sqrt(sigma), for packed
	square  float64     // squared norm of mean

	zero []float32 // linear features of the zero vector
}

// maxPacked bounds the numbers of packed anchors: 16 MiB, about what a cache holds.
// With more, products would wait for memory.
const maxPacked = 1 << 22

// packs reports whether packed anchors cost less than lists. Let column j have c_j of
// the k anchors. A row like the anchors has the column with probability c_j/k and meets
// c_j anchors in it: the sum of c_j^2/k, one after the other, with lists. Packed
// anchors take k for each number of the row, about 20 at a time.
func packs(anchors *csr, d int) bool {
	k := anchors.rows()
	if k > maxPacked/d {
		return false
	}
	counts := make([]int, d)
	for _, j := range anchors.index {
		counts[j]++
	}
	met := 0.0
	for _, c := range counts {
		met += float64(c) * float64(c)
	}
	return met*20 > float64(len(anchors.index))*float64(k)
}

// newSparseMap takes the mean of features, and anchors among these features.
func newSparseMap(kind MapKind, mean []float64, sigma float64, anchors csr) *Map {
	d, s := len(mean), &sparseMap{}
	f := linearMap(mean)
	f.kind, f.sparse = kind, s
	if kind != MapLinear {
		f.sigma, f.scale = sigma, 1/math.Sqrt(sigma)
		s.anchors = anchors
		f.norms = make([]float32, anchors.rows())
		if packs(&anchors, d) {
			f.pack()
		} else {
			s.lists = newAnchorLists(&anchors, d)
			for i := range anchors.rows() {
				s.squares = append(s.squares, dense.SquaredNorm(anchors.row(i).Value))
			}
		}
	}
	if kind != MapRBF {
		s.zero = make([]float32, d+1)
		f.Prepare(s.zero[:d], Dense(s.zero[:d]))
		linear(s.zero, s.zero[:d], f.unit())
	}
	return f
}

// unit is the factor of the linear features beyond scale.
func (f *Map) unit() float32 {
	if f.kind == MapRBFLinear {
		return math.Sqrt2
	}
	return 1
}

// pack makes the packed anchors and their norms.
func (f *Map) pack() {
	s, k, d := f.sparse, f.sparse.anchors.rows(), f.dim
	s.mean = make([]float64, d)
	for j, v := range f.mean {
		s.mean[j] = v * f.scale
		s.square += float64(s.mean[j] * s.mean[j]) // not fused: the same bits on all processors
	}
	centred := make([]float32, k*d)
	for i := range k {
		a := centred[i*d : (i+1)*d]
		scatter(a, s.anchors.row(i))
		f.centre(a, a)
		shift := 0.0
		for j, v := range a {
			shift += float64(s.mean[j] * float64(v))
		}
		f.norms[i] = float32(dense.SquaredNorm(a) + 2*shift)
	}
	f.anchors = dense.Pack(dense.Of(k, d, centred))
}

// applySparse is apply for sparse vectors.
func (f *Map) applySparse(phi []float32, xs []Vector, s *MapScratch) {
	k, anchors := f.Size(), len(f.norms)
	for len(xs) > 0 {
		n := min(len(xs), parallel.Rows)
		rows := &s.sparse
		rows.reset()
		for i, x := range xs[:n] {
			rows.append(x)
			if row := rows.row(i); f.features.Kind != FeaturesRaw {
				f.features.Apply(row.Value, row)
			}
		}
		if f.kind != MapRBF {
			for i := range n {
				f.linear(phi[i*k+anchors:(i+1)*k], rows.row(i))
			}
		}
		switch {
		case f.kind == MapLinear:
		case f.anchors != nil:
			f.rbfPacked(dense.Matrix[float32]{Rows: n, Cols: anchors, Stride: k, Data: phi}, rows)
		default:
			if len(s.dots) < anchors {
				s.dots = make([]float64, anchors)
			}
			for i := range n {
				f.rbfLists(phi[i*k:i*k+anchors], rows.row(i), s.dots[:anchors])
			}
		}
		phi, xs = phi[n*k:], xs[n:]
	}
}

// linear writes the linear features of x to dst.
func (f *Map) linear(dst []float32, x Vector) {
	copy(dst, f.sparse.zero)
	unit := f.unit()
	for e, j := range x.Index {
		v := float32((float64(x.Value[e]) - f.mean[j]) * f.scale)
		dst[j] = min(max(unit*v, -math.MaxFloat32), math.MaxFloat32)
	}
}

// rbfPacked writes the RBF features of rows. It scales rows in place.
func (f *Map) rbfPacked(phi dense.Matrix[float32], rows *csr) {
	for e, v := range rows.value {
		rows.value[e] = float32(float64(v) * f.scale)
	}
	dense.SparseMulNT(phi, rows.matrix(f.dim), f.anchors)
	for i := range phi.Rows {
		x, row := rows.row(i), phi.Data[i*phi.Stride:][:phi.Cols]
		shift := 0.0
		for e, j := range x.Index {
			shift += float64(f.sparse.mean[j] * float64(x.Value[e]))
		}
		if norm := dense.SquaredNorm(x.Value) - 2*shift + f.sparse.square; norm < farAway {
			dense.Gaussian(row, row, float32(norm), f.norms, 1)
		} else {
			clear(row)
		}
	}
}

// rbfLists writes the RBF features of x to phi. dots has room for a number an anchor.
func (f *Map) rbfLists(phi []float32, x Vector, dots []float64) {
	s := f.sparse
	clear(dots)
	for e, j := range x.Index {
		s.lists.add(dots, j, float64(x.Value[e]))
	}
	norm, half := dense.SquaredNorm(x.Value), -.5*f.scale*f.scale
	for i, dot := range dots {
		phi[i] = float32((norm + s.squares[i] - 2*dot) * half)
	}
	// With norms of 0, Gaussian computes e to the negative squared distance.
	dense.Gaussian(phi, phi, 0, f.norms, 1)
}

// anchorLists are the numbers of anchors by column (compressed sparse columns).
type anchorLists struct {
	start  []int // by column, and the end of the last one
	anchor []uint32
	value  []float32
}

// newAnchorLists turns the rows of m, one an anchor, into lists by column, by a counting
// sort.
func newAnchorLists(m *csr, cols int) anchorLists {
	l := anchorLists{
		start:  make([]int, cols+1),
		anchor: make([]uint32, len(m.index)), value: make([]float32, len(m.index)),
	}
	for _, j := range m.index {
		l.start[j+1]++
	}
	for j := range cols {
		l.start[j+1] += l.start[j]
	}
	for i := range m.rows() {
		a := m.row(i)
		for e, j := range a.Index {
			at := l.start[j]
			l.anchor[at], l.value[at] = uint32(i), a.Value[e]
			l.start[j]++
		}
	}
	copy(l.start[1:], l.start) // each was moved to where the next column begins
	l.start[0] = 0
	return l
}

// add adds v times column j of the anchors to dots.
func (l *anchorLists) add(dots []float64, j uint32, v float64) {
	from, to := l.start[j], l.start[j+1]
	anchors := l.anchor[from:to]
	values := l.value[from:to]
	values = values[:len(anchors)]
	for e, a := range anchors {
		// Converting the product keeps a compiler from fusing it with the sum.
		dots[a] += float64(v * float64(values[e]))
	}
}
