package model

import (
	"math"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// A sparseMap is what a featureMap has instead where vectors are sparse. Centring
// would fill them, so the mean is taken out of the products instead.
//
// RBF: the products with the anchors come from one of two layouts, whichever costs
// less, see packs; which one depends on the anchors alone, so that a model has the
// same features wherever it is read.
//
//   - Packed: with m, x and a divided by sqrt(sigma),
//
//     |x - a|^2 = |x - m|^2 + (|a - m|^2 + 2 m.(a - m)) - 2 x.(a - m),
//
//     where the first term is a constant of the row and the second one of the anchor,
//     both summed in float64, and the products are those of a sparse row and dense
//     rows a - m: what cancels is of the size of the spread, as with dense vectors.
//
//   - Lists: for each column the anchors that have a number in it, and
//     |x|^2 + |a|^2 - 2 x.a in float64, where the cancellation does not matter.
//
// Linear, and the linear part of RBF and linear: the features of dense vectors, bit
// for bit. They are those of the zero vector but where x has a number; what follows
// (k^2/2 multiplications an item) takes so much longer than copying k of them that
// leaving x where it is, as [x, 1], would gain nothing.
type sparseMap struct {
	anchors csr         // features of training vectors, neither centred nor scaled
	lists   anchorLists // no columns if the anchors are packed
	squares []float64   // |anchor|^2 of lists
	mean    []float64   // of packed: mean / sqrt(sigma)
	square  float64     // and its squared norm

	zero []float32 // linear features of the zero vector
}

// maxPacked is how many numbers packed anchors may have: 16 MiB, about what a cache
// holds. Of more, the products would wait for memory.
const maxPacked = 1 << 22

// packs reports whether packed anchors cost less than lists of them. A row that is
// as the anchors are meets, in a column, as many of them as the column has, each
// with the chance that it has the column too: sum of c^2/k, one after the other in
// lists, against k for each of its numbers in packed ones, some 20 at a time.
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

// newSparseMap takes the mean of features, and anchors among them.
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
				s.squares = append(s.squares, squaredNorm(anchors.row(i).Value))
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

// unit is what the linear features are multiplied with beyond scale.
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
		f.norms[i] = float32(squaredNorm(a) + 2*shift)
	}
	f.anchors = dense.Pack(dense.Of(k, d, centred))
}

// applySparse is apply.
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

// linear writes the linear features of x.
func (f *featureMap) linear(dst []float32, x Vector) {
	copy(dst, f.sparse.zero)
	unit := f.unit()
	for e, j := range x.Index {
		v := float32((float64(x.Value[e]) - f.mean[j]) * f.scale)
		dst[j] = min(max(unit*v, -math.MaxFloat32), math.MaxFloat32)
	}
}

// rbfPacked writes the RBF features of rows, which it scales.
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
		if norm := squaredNorm(x.Value) - 2*shift + f.sparse.square; norm < farAway {
			dense.Gaussian(row, row, float32(norm), f.norms, 1)
		} else {
			clear(row)
		}
	}
}

// rbfLists writes the RBF features of x; dots has room for a number an anchor.
func (f *featureMap) rbfLists(phi []float32, x Vector, dots []float64) {
	s := f.sparse
	clear(dots)
	for e, j := range x.Index {
		s.lists.add(dots, j, float64(x.Value[e]))
	}
	norm, half := squaredNorm(x.Value), -.5*f.scale*f.scale
	for i, dot := range dots {
		phi[i] = float32((norm + s.squares[i] - 2*dot) * half)
	}
	// With norms of 0, that is e to the negative of the squared distance.
	dense.Gaussian(phi, phi, 0, f.norms, 1)
}

// anchorLists are the numbers of anchors by column (CSC).
type anchorLists struct {
	start  []int // by column, and the end
	anchor []uint32
	value  []float32
}

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
	copy(l.start[1:], l.start) // each is where the next column begins now
	l.start[0] = 0
	return l
}

// add adds to dots what the anchors have in column j, times v.
func (l *anchorLists) add(dots []float64, j uint32, v float64) {
	from, to := l.start[j], l.start[j+1]
	anchors := l.anchor[from:to]
	values := l.value[from:to]
	values = values[:len(anchors)]
	for e, a := range anchors {
		// The conversion of the product keeps a compiler from fusing it with the sum.
		dots[a] += float64(v * float64(values[e]))
	}
}
