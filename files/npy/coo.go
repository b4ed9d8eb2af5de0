package npy

import (
	"archive/zip"
	"math"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// maxPerByte bounds the entries of a matrix that is not row by row, as they are held in memory: so many for
// each byte of the file, and leastEntries. The places of an entry take a byte at least in most files.
const (
	maxPerByte   = 8
	leastEntries = 1 << 16
)

// places reads the row and the column of each entry, one after the other.
type places func() (row, column int64, err error)

// openEntries reads a matrix whose entries are in any order: coo, with the members row and col, or csc, like
// csr but by columns.
func (r *csr) openEntries(format string, members map[string]*zip.File) (_ *matrix.Vectors, err error) {
	if r.data, err = r.openPart(format, "data", members); err != nil {
		return nil, err
	}
	if most := maxPerByte*r.src.Size + leastEntries; r.data.N > most {
		return nil, r.src.Fail("has %s numbers as %s, of which %s are read: write it with scipy.sparse.save_npz(FILE, m.tocsr())",
			matrix.Thousands(r.data.N), format, matrix.Thousands(most))
	}
	next, err := r.places(format, members)
	if err != nil {
		return nil, err
	}
	entries := make([]matrix.Entry, 0, r.data.N)
	for range r.data.N {
		row, column, err := next()
		if err != nil {
			return nil, err
		}
		b, err := r.data.Element()
		if err != nil {
			return nil, err
		}
		if row < 0 || row >= int64(r.rows) || column < 0 || column >= int64(r.cols) {
			return nil, r.src.Fail("has a number in row %d, column %d of %s x %s: the file is damaged", row,
				column, matrix.Thousands(r.rows), matrix.Thousands(r.cols))
		}
		var x [1]float32
		if r.data.Type.Float32s(x[:], b) >= 0 {
			x[0] = float32(math.NaN()) // refused with its row
		}
		entries = append(entries, matrix.Entry{Row: uint32(row), Column: uint32(column), Value: x[0]})
	}
	return matrix.ByRows(matrix.Format{Name: r.src.Name, Rows: r.rows, Cols: r.cols, Sum: true,
		Closer: append(r.closers(), r.src.Closer)}, entries), nil
}

// places opens what says the places of entries.
func (r *csr) places(format string, members map[string]*zip.File) (places, error) {
	first, second := "row", "col"
	if format == "csc" {
		first, second = "indices", "indptr"
	}
	var err error
	if r.indices, err = r.openPart(format, first, members); err != nil {
		return nil, err
	}
	if r.starts, err = r.openPart(format, second, members); err != nil {
		return nil, err
	}
	want := r.data.N
	if format == "csc" {
		want = int64(r.cols) + 1
	}
	if r.indices.N != r.data.N || r.starts.N != want {
		return nil, r.src.Fail("%s has %s numbers and %s %s, where data has %s: the file is damaged", first,
			matrix.Thousands(r.indices.N), second, matrix.Thousands(r.starts.N), matrix.Thousands(r.data.N))
	}
	if format == "coo" {
		return func() (row, column int64, err error) {
			if row, err = r.indices.Integer(); err == nil {
				column, err = r.starts.Integer()
			}
			return row, column, err
		}, nil
	}
	start, err := r.starts.Integer()
	if err == nil && start != 0 {
		err = r.starts.Source.Fail("starts with %d, not with 0: the file is damaged", start)
	}
	if err != nil {
		return nil, err
	}
	at, end, of := int64(0), int64(0), int64(-1) // of: the column that ends at end
	return func() (row, column int64, err error) {
		for ; at >= end; of++ {
			if of+1 >= int64(r.cols) {
				return 0, 0, r.starts.Source.Fail("the last column ends at %d of %d numbers: the file is damaged",
					end, r.data.N)
			}
			last := end
			if end, err = r.starts.Integer(); err != nil {
				return 0, 0, err
			}
			if end < last || end > r.data.N {
				return 0, 0, r.starts.Source.Fail("column %d ends at %d of %d numbers, the one before at %d: the file is damaged",
					of+1, end, r.data.N, last)
			}
		}
		at++
		row, err = r.indices.Integer()
		return row, of, err
	}, nil
}

// openPart opens a member of a matrix of a format.
func (r *csr) openPart(format, name string, members map[string]*zip.File) (*matrix.Run, error) {
	f := members[name]
	if f == nil {
		return nil, r.src.Fail("is not a %s matrix: it has no member %q", format, name)
	}
	return openRun(r.src, f, name != "data")
}
