package model

import (
	"encoding/binary"
	"fmt"

	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// csr holds sparse vectors row by row (compressed sparse rows). Row i has value[e] in
// column index[e] for start[i] <= e < start[i+1].
type csr struct {
	start []int
	index []uint32
	value []float32
}

// csrOf copies sparse vectors.
func csrOf(xs []Vector) csr {
	m := csr{start: make([]int, 1, len(xs)+1)}
	for _, x := range xs {
		m.append(x)
	}
	return m
}

func (m *csr) reset() { m.start, m.index, m.value = append(m.start[:0], 0), m.index[:0], m.value[:0] }

// append adds a row. x may be dense or sparse.
func (m *csr) append(x Vector) {
	m.index, m.value = appendSparse(m.index, m.value, x)
	m.start = append(m.start, len(m.index))
}

func (m *csr) rows() int { return len(m.start) - 1 }

// row returns row i, which aliases m.
func (m *csr) row(i int) Vector {
	from, to := m.start[i], m.start[i+1]
	return Vector{Index: m.index[from:to:to], Value: m.value[from:to:to]}
}

// matrix returns m as the left operand of a product.
func (m *csr) matrix(cols int) dense.Sparse {
	return dense.Sparse{Rows: m.rows(), Cols: cols, Start: m.start, Index: m.index, Value: m.value}
}

// sparse writes the rows of m.
func writeSparse(w *wire.Writer, m *csr) {
	for i := range m.rows() {
		x := m.row(i)
		w.U32(uint32(len(x.Index)))
		for _, j := range x.Index {
			w.U32(j)
		}
		w.F32s(x.Value)
	}
}

// sparse reads n sparse vectors of d dimensions.
func readSparse(r *wire.Reader, n, d int, what string) csr {
	m := csr{start: []int{0}}
	for range n {
		count := r.Count("the numbers of "+what, 0, d)
		index, next := r.Take(4*count, what), uint64(0)
		for ; len(index) > 0; index = index[4:] {
			j := binary.LittleEndian.Uint32(index)
			if uint64(j) < next || int64(j) >= int64(d) {
				r.Fail("index %d of %s after %d, of %d dimensions", j, what, int64(next)-1, d)
				break
			}
			next = uint64(j) + 1
			m.index = append(m.index, j)
		}
		m.value = append(m.value, r.F32s(count, what)...)
		if r.Err != nil {
			return csr{}
		}
		m.start = append(m.start, len(m.index))
	}
	return m
}

// A Vector is the features of an item in one modality, dense or sparse.
//
// Dense: Index is nil, and Value holds a number for each dimension.
//
// Sparse: Index is not nil, and Value[e] is the number in dimension Index[e]. Indices
// ascend strictly; all other numbers are 0. A sparse vector may hold no numbers at all,
// such as the words of an empty text. It may hold zeros, which cost as much as other
// numbers.
//
// The zero Vector, whose Value is nil, stands for no vector. [Dense] and [Sparse] make
// vectors from slices.
//
// A vector of either form may be used in a modality of the other form. Training and projections convert it,
// with the same result as for a vector in the form of the modality, to the last bit.
type Vector struct {
	Index []uint32  // dimensions, strictly ascending; nil if dense
	Value []float32 // numbers; nil if there is no vector
}

// Dense returns x as a vector, which aliases x; no vector for nil.
func Dense(x []float32) Vector { return Vector{Value: x} }

// Sparse returns the vector with these numbers in these dimensions. It aliases the
// slices. For nil it returns a vector without numbers, unlike Dense.
func Sparse(index []uint32, value []float32) Vector {
	if index == nil {
		index = []uint32{}
	}
	if value == nil {
		value = []float32{}
	}
	return Vector{Index: index, Value: value}
}

// Present reports whether there is a vector.
func (v Vector) Present() bool { return v.Value != nil }

// IsSparse reports whether the vector is in sparse form.
func (v Vector) IsSparse() bool { return v.Index != nil }

// Set makes v a copy of x in the form of the modality. It reuses the memory of v.
func (v *Vector) Set(m Modality, x Vector) {
	if !m.Sparse {
		v.Index = nil
		if !x.IsSparse() {
			v.Value = append(v.Value[:0], x.Value...)
			return
		}
		if cap(v.Value) < m.Dim {
			v.Value = make([]float32, m.Dim)
		}
		v.Value = v.Value[:m.Dim]
		scatter(v.Value, x)
		return
	}
	if v.Index == nil {
		*v = Sparse(nil, nil)
	}
	v.Index, v.Value = appendSparse(v.Index[:0], v.Value[:0], x)
}

// scatter writes a sparse vector to dst, which has a number for each dimension.
func scatter(dst []float32, x Vector) {
	clear(dst)
	for e, j := range x.Index {
		dst[j] = x.Value[e]
	}
}

// appendSparse appends the numbers of x in sparse form: the non-zero ones if x is dense, all stored ones if x
// is sparse.
func appendSparse(index []uint32, value []float32, x Vector) ([]uint32, []float32) {
	if x.IsSparse() {
		return append(index, x.Index...), append(value, x.Value...)
	}
	for j, v := range x.Value {
		if v != 0 {
			index, value = append(index, uint32(j)), append(value, v)
		}
	}
	return index, value
}

// CheckVector refuses a vector that does not fit the modality.
func CheckVector(m Modality, v Vector) error {
	if !v.IsSparse() {
		if len(v.Value) != m.Dim {
			return &DimensionError{Modality: m.Name, Got: len(v.Value), Want: m.Dim}
		}
		if i := notFinite(v.Value); i >= 0 {
			return finiteError(m, i, v.Value[i])
		}
		return nil
	}
	if len(v.Index) != len(v.Value) {
		return fmt.Errorf("%w: modality %q: a sparse vector of %d indices and %d values: give one index for each value", ErrMismatch, m.Name, len(v.Index), len(v.Value))
	}
	next := uint64(0)
	for e, j := range v.Index {
		if uint64(j) < next {
			return fmt.Errorf("%w: modality %q: index %d of a sparse vector follows %d: indices must ascend, each once: sort them and add up what comes twice", ErrMismatch, m.Name, j, v.Index[e-1])
		}
		next = uint64(j) + 1
	}
	if next > uint64(m.Dim) {
		return fmt.Errorf("%w: modality %q: a sparse vector has index %d, but the dimensions are 0 to %d",
			ErrMismatch, m.Name, next-1, m.Dim-1)
	}
	if e := notFinite(v.Value); e >= 0 {
		return finiteError(m, int(v.Index[e]), v.Value[e])
	}
	return nil
}

func finiteError(m Modality, dimension int, v float32) error {
	return fmt.Errorf("modality %q, dimension %d is %v: %w: replace it or leave the vector out", m.Name,
		dimension, v, ErrNotFinite)
}

// notFinite returns the index of the first number that is NaN or infinite, or -1.
func notFinite(x []float32) int {
	// v-v is 0 for finite numbers and NaN otherwise. One test of the sum at the end
	// costs less than a test of each element, and four sums do not wait for one
	// another.
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
		return -1
	}
	for i, v := range x {
		if v-v != 0 {
			return i
		}
	}
	return -1
}

// A Modality is one kind of vector that items have. If it is Sparse, training, anchors and projections store
// and multiply only the numbers that vectors hold. The codes equal the codes of dense vectors, but for
// rounding.
type Modality struct {
	Name   string
	Dim    int // dimensions of a vector
	Sparse bool
}

// An Example is one training item.
type Example struct {
	Vectors []Vector // by modality; the zero Vector if the item lacks it
	Labels  []uint32 // sorted and distinct; any numbers
}
