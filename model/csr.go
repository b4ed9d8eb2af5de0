package model

import "github.com/fddhdb/fddhdb/model/internal/dense"

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
