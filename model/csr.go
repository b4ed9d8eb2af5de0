package model

import (
	"encoding/binary"

	"github.com/fddhdb/fddhdb/model/internal/dense"
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
func writeSparse(w *wireWriter, m *csr) {
	for i := range m.rows() {
		x := m.row(i)
		w.u32(uint32(len(x.Index)))
		for _, j := range x.Index {
			w.u32(j)
		}
		w.f32s(x.Value)
	}
}

// sparse reads n sparse vectors of d dimensions.
func readSparse(r *wireReader, n, d int, what string) csr {
	m := csr{start: []int{0}}
	for range n {
		count := r.count("the numbers of "+what, 0, d)
		index, next := r.take(4*count, what), uint64(0)
		for ; len(index) > 0; index = index[4:] {
			j := binary.LittleEndian.Uint32(index)
			if uint64(j) < next || int64(j) >= int64(d) {
				r.fail("index %d of %s after %d, of %d dimensions", j, what, int64(next)-1, d)
				break
			}
			next = uint64(j) + 1
			m.index = append(m.index, j)
		}
		m.value = append(m.value, r.f32s(count, what)...)
		if r.err != nil {
			return csr{}
		}
		m.start = append(m.start, len(m.index))
	}
	return m
}
