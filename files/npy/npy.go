// Package npy reads and writes the files of numpy: .npy, versions 1.0, 2.0 and 3.0, of any type of numbers,
// both byte orders, C and Fortran order; .npz, an archive of them; and the .npz of a sparse matrix of scipy
// (save_npz) in csr form.
//
// Package files opens them by name. Programs use what writes, and ReadCodes.
package npy

import (
	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Open opens a .npy. An array of one dimension is one row, or if flat a row for each number.
func Open(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	return h.vectors(src, flat)
}

// vectors returns the rows of a matrix.
func (h *header) vectors(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	rows, cols := h.rows, h.cols
	if h.vector && !flat {
		if rows < 1 || rows > matrix.MaxCols {
			return nil, src.Fail("is one vector of %s numbers: 1 to %s are supported; rows of one number have the shape (n, 1)", matrix.Thousands(rows), matrix.Thousands(matrix.MaxCols))
		}
		rows, cols = 1, rows
	}
	m := h.dense(src)
	if m.Rows, m.Cols = rows, cols; rows == 1 || cols == 1 {
		m.Fortran = false
	}
	v := m.Vectors()
	v.Flat = h.vector && flat
	return v, nil
}

func (h *header) dense(src matrix.Source) *matrix.Dense {
	return &matrix.Dense{Source: src, Type: h.kind, Fortran: h.fortran, Rows: h.rows, Cols: h.cols, At: h.data}
}
