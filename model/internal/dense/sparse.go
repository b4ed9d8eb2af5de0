package dense

import (
	"fmt"
	"unsafe"
)

// A Sparse is a matrix that stores only its nonzero elements (compressed sparse rows).
// Row i has Value[e] in column Index[e] for Start[i] <= e < Start[i+1]. Start has
// Rows+1 ascending elements. Columns of a row may come in any order, and a column that
// comes twice is summed.
type Sparse struct {
	Rows, Cols int
	Start      []int
	Index      []uint32
	Value      []float32
}

// check panics if the slices do not make up a matrix. The kernels in assembly depend on
// it.
func (m Sparse) check() {
	if m.Rows < 0 || m.Cols < 0 || len(m.Start) < m.Rows+1 || len(m.Index) != len(m.Value) {
		panic(fmt.Sprintf("dense: a sparse matrix of %d x %d with %d starts, %d columns and %d values",
			m.Rows, m.Cols, len(m.Start), len(m.Index), len(m.Value)))
	}
	last := 0
	for i, s := range m.Start[:m.Rows+1] {
		if s < last || s > len(m.Index) {
			panic(fmt.Sprintf("dense: row %d of a sparse matrix starts at %d, after %d, of %d elements", i, s, last, len(m.Index)))
		}
		last = s
	}
	for e, j := range m.Index[m.Start[0]:last] {
		if int(j) >= m.Cols {
			panic(fmt.Sprintf("dense: element %d of a sparse matrix is in column %d of %d", e, j, m.Cols))
		}
	}
}

// SparseMulNT is MulNT for a sparse left operand. If the columns of each row ascend and
// b is finite, the result is that of MulNT for the same matrix, to the last bit. A row
// costs as many multiplications as it has elements, times the rows of b.
func SparseMulNT(c Matrix[float32], a Sparse, b *Packed[float32]) {
	a.check()
	c.check("the product")
	if a.Cols != b.cols || c.Rows != a.Rows || c.Cols != b.rows {
		panic(fmt.Sprintf("dense: the product of %d x %d and the transpose of %d x %d is not %d x %d",
			a.Rows, a.Cols, b.rows, b.cols, c.Rows, c.Cols))
	}
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	s := borrow[float32]()
	defer giveBack(s)
	w, panel := panelWidth[float32](), b.panelSize()
	// Take two panels at a time, which stay in the cache for all rows.
	for j := 0; j < c.Cols; {
		panels := 1
		if j+2*w <= c.Cols {
			panels = 2
		}
		for i := range c.Rows {
			from, to := a.Start[i], a.Start[i+1]
			dst := c.row(i)[j:min(j+panels*w, c.Cols)]
			if from == to {
				clear(dst)
				continue
			}
			out := dst
			if len(out) < w {
				out = s.edge[:w]
			}
			_ = out[panels*w-1]
			sparseBy(active, a.Index[from:to], a.Value[from:to], unsafe.Pointer(&b.data[j/w*panel]), panel*4, panels, unsafe.Pointer(&out[0]))
			if len(dst) < w {
				copy(dst, out)
			}
		}
		j += panels * w
	}
}
