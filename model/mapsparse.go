package model

import (
	"math"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A sparseMap replaces the anchors of a featureMap if vectors are sparse. Centring
// would fill the vectors, so the mean is taken out of the products instead.
//
// RBF: products with the anchors come from the layout that costs less; see packs. The
// choice depends on the anchors alone, so a model has the same features wherever it is
// read.
//
//   - Packed. With m, x and a divided by sqrt(sigma), |x - a|^2 = |x - m|^2 + (|a -
//     m|^2 + 2 m.(a - m)) - 2 x.(a - m). The first term is a constant of the row and
//     the second one of the anchor, both summed in float64. The products are those of a
//     sparse row and dense rows a - m. What cancels has the size of the spread, as with
//     dense vectors.
//
//   - Lists. For each column, the anchors that have a number in it; and |x|^2 + |a|^2 -
//     2 x.a in float64, where the cancellation does not matter.
//
// Linear, and the linear part of RBF and linear: the features of dense vectors, bit for
// bit. They are those of the zero vector except where x has a number. Copying k numbers
// an item takes little beside the k^2/2 multiplications that follow, so keeping x
// sparse here would gain nothing.
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
func newSparseMap(kind MapKind, mean []float64, sigma float64, anchors csr) *featureMap {
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
		f.prepare(s.zero[:d], Dense(s.zero[:d]))
		linear(s.zero, s.zero[:d], f.unit())
	}
	return f
}

// unit is the factor of the linear features beyond scale.
func (f *featureMap) unit() float32 {
	if f.kind == MapRBFLinear {
		return math.Sqrt2
	}
	return 1
}

// pack makes the packed anchors and their norms.
func (f *featureMap) pack() {
	s, k, d := f.sparse, f.sparse.anchors.rows(), f.dim
	s.mean = make([]float64, d)
	for j, v := range f.mean {
		s.mean[j] = v * f.scale
		s.square += s.mean[j] * s.mean[j]
	}
	centred := make([]float32, k*d)
	for i := range k {
		a := centred[i*d : (i+1)*d]
		scatter(a, s.anchors.row(i))
		f.centre(a, a)
		shift := 0.0
		for j, v := range a {
			shift += s.mean[j] * float64(v)
		}
		f.norms[i] = float32(dense.SquaredNorm(a) + 2*shift)
	}
	f.anchors = dense.Pack(dense.Of(k, d, centred))
}

// applySparse is apply for sparse vectors.
func (f *featureMap) applySparse(phi []float32, xs []Vector, s *mapScratch) {
	k, anchors := f.size(), len(f.norms)
	for len(xs) > 0 {
		n := min(len(xs), mapRows)
		rows := &s.sparse
		rows.reset()
		for i, x := range xs[:n] {
			rows.append(x)
			if row := rows.row(i); f.features.kind != FeaturesRaw {
				f.features.apply(row.Value, row)
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
func (f *featureMap) linear(dst []float32, x Vector) {
	copy(dst, f.sparse.zero)
	unit := f.unit()
	for e, j := range x.Index {
		v := float32((float64(x.Value[e]) - f.mean[j]) * f.scale)
		dst[j] = min(max(unit*v, -math.MaxFloat32), math.MaxFloat32)
	}
}

// rbfPacked writes the RBF features of rows. It scales rows in place.
func (f *featureMap) rbfPacked(phi dense.Matrix[float32], rows *csr) {
	for e, v := range rows.value {
		rows.value[e] = float32(float64(v) * f.scale)
	}
	dense.SparseMulNT(phi, rows.matrix(f.dim), f.anchors)
	for i := range phi.Rows {
		x, row := rows.row(i), phi.Data[i*phi.Stride:][:phi.Cols]
		shift := 0.0
		for e, j := range x.Index {
			shift += f.sparse.mean[j] * float64(x.Value[e])
		}
		if norm := dense.SquaredNorm(x.Value) - 2*shift + f.sparse.square; norm < farAway {
			dense.Gaussian(row, row, float32(norm), f.norms, 1)
		} else {
			clear(row)
		}
	}
}

// rbfLists writes the RBF features of x to phi. dots has room for a number an anchor.
func (f *featureMap) rbfLists(phi []float32, x Vector, dots []float64) {
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
