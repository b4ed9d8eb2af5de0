package files

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// A matrix as scipy.sparse.save_npz writes it is a .npz of
//
//	format   the name of the format, bytes: csr is read
//	shape    rows and columns, integers
//	indptr   integers, one more than there are rows: where each row starts
//	indices  integers: the columns of the numbers, row after row
//	data     the numbers
//
// and, from newer versions, _is_array, which does not matter here.
//
// As in scipy, the columns of a row may come in any order, and numbers of one column
// are added up. Numbers that are 0 are dropped.

// csrReader is the Reader of such a file. It reads three members side by side, a row at
// a time.
type csrReader struct {
	src                   source
	rows, cols            int
	starts, indices, data *vector
	next                  int      // row
	start                 int64    // first entry of that row
	entries               []entry  // scratch memory of readRow
	index                 []uint32 // scratch memory of Next
	value                 []float32
	err                   error // the final error
}

// entry is a number of a row.
type entry struct {
	column uint32
	value  float32
}

func openCSR(src source, members map[string]*zip.File) (_ Reader, err error) {
	format, err := readFormat(src, members["format"])
	if err != nil {
		return nil, err
	}
	if format != "csr" {
		return nil, src.fail("holds a sparse matrix of format %s, and csr is read: write it with scipy.sparse.save_npz(FILE, m.tocsr())", quote([]byte(format)))
	}
	r := &csrReader{src: src}
	defer func() {
		if err != nil {
			r.closeMembers()
		}
	}()
	if err := r.readShape(members["shape"]); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		to   **vector
	}{{"indptr", &r.starts}, {"indices", &r.indices}, {"data", &r.data}} {
		f := members[m.name]
		if f == nil {
			return nil, src.fail("is not a csr matrix: it has no member %q", m.name)
		}
		if *m.to, err = openVector(src, f); err != nil {
			return nil, err
		}
		if m.name != "data" && r.integers(*m.to) != nil {
			return nil, r.integers(*m.to)
		}
	}
	switch {
	case r.starts.n != int64(r.rows)+1:
		return nil, src.fail("indptr has %s numbers, %s rows need one more than that: the file is damaged", thousands(r.starts.n), thousands(r.rows))
	case r.indices.n != r.data.n:
		return nil, src.fail("indices has %s numbers and data %s: the file is damaged", thousands(r.indices.n), thousands(r.data.n))
	}
	if err := r.checkStarts(members["indptr"]); err != nil {
		return nil, err
	}
	_, err = r.starts.integer() // the 0 at the start
	return r, err
}

// integers refuses a member that does not hold integers.
func (r *csrReader) integers(v *vector) error {
	if v.dtype.kind != 'i' && v.dtype.kind != 'u' {
		return v.src.fail("is of dtype %v, where integers are expected", v.dtype)
	}
	return nil
}

// checkStarts reads and checks indptr once, as everything else depends on it.
func (r *csrReader) checkStarts(f *zip.File) error {
	v, err := openVector(r.src, f)
	if err != nil {
		return err
	}
	defer v.close()
	last := int64(0)
	for row := range r.rows + 1 {
		x, err := v.integer()
		if err != nil {
			return err
		}
		switch {
		case row == 0 && x != 0:
			return v.src.fail("starts with %d, not with 0: the file is damaged", x)
		case x < last || x > r.data.n:
			return v.src.fail("row %d ends at %d of %d numbers, the one before at %d: the file is damaged", row-1, x, r.data.n, last)
		case x-last > int64(r.cols):
			return r.src.fail("row %d has %s numbers in %s columns: add up what comes twice with m.sum_duplicates() and save it again", row-1, thousands(x-last), thousands(r.cols))
		}
		last = x
	}
	if last < r.data.n {
		return r.src.fail("has %s numbers of which the last row ends at %s: drop the rest with m.prune() and save it again", thousands(r.data.n), thousands(last))
	}
	return nil
}

// readFormat reads the member with the name of the format of a sparse matrix.
func readFormat(src source, f *zip.File) (string, error) {
	m, err := openMember(src, f)
	if err != nil {
		return "", err
	}
	defer m.close()
	d, at, err := readNPYDict(m)
	if err != nil {
		return "", err
	}
	const most = 64
	if n := m.size - at; n < 0 || n > most || len(d.descr) < 2 {
		return "", m.fail("names no format of a sparse matrix")
	}
	b := make([]byte, m.size-at)
	if err := m.readFull(b, at); err != nil {
		return "", err
	}
	// It is bytes (|S3) or characters of four bytes each (<U3), padded with zeros.
	b = slices.DeleteFunc(b, func(c byte) bool { return c == 0 })
	return string(b), nil
}

func (r *csrReader) readShape(f *zip.File) error {
	v, err := openVector(r.src, f)
	if err != nil {
		return err
	}
	defer v.close()
	if err := r.integers(v); err != nil {
		return err
	}
	if v.n != 2 {
		return v.src.fail("has %s numbers, not two", thousands(v.n))
	}
	rows, err := v.integer()
	if err != nil {
		return err
	}
	cols, err := v.integer()
	switch {
	case err != nil:
		return err
	case rows < 0 || rows > math.MaxUint32:
		return r.src.fail("has %d rows, 0 to %d are supported", rows, uint32(math.MaxUint32))
	case cols < 1 || cols > maxCols:
		return r.src.fail("has %s columns: 1 to %s are supported; rows are items, is the matrix transposed?", thousands(cols), thousands(maxCols))
	}
	r.rows, r.cols = int(rows), int(cols)
	return nil
}

func (r *csrReader) Rows() int { return r.rows }
func (r *csrReader) Cols() int { return r.cols }

func (r *csrReader) Next(dst []float32) (err error) {
	if r.err == nil && len(dst) != r.cols {
		return r.src.fail("a row has %d values, the slice for it %d", r.cols, len(dst))
	}
	if r.index, r.value, err = r.NextSparse(r.index[:0], r.value[:0]); err != nil {
		return err
	}
	clear(dst)
	for e, j := range r.index {
		dst[j] = r.value[e]
	}
	return nil
}

func (r *csrReader) NextSparse(index []uint32, value []float32) ([]uint32, []float32, error) {
	if r.err != nil {
		return index, value, r.err
	}
	if r.next == r.rows {
		r.err = io.EOF
		return index, value, r.err
	}
	bad, err := r.readRow()
	row := r.next
	r.next++
	if err != nil {
		r.err = err
		return index, value, err
	}
	if bad != nil {
		bad.Row = row
		return index, value, bad
	}
	slices.SortStableFunc(r.entries, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	for i := 0; i < len(r.entries); {
		column, sum := r.entries[i].column, 0.0
		for ; i < len(r.entries) && r.entries[i].column == column; i++ {
			sum += float64(r.entries[i].value)
		}
		switch x := float32(sum); {
		case math.IsInf(float64(x), 0):
			return index, value, &Error{File: r.src.name, Row: row, Col: int(column), Err: errTooLarge(fmt.Sprint(sum))}
		case x != 0:
			index, value = append(index, column), append(value, x)
		}
	}
	return index, value, nil
}

// readRow reads the entries of the next row. bad is an error about one number, which
// costs the row. err is final.
func (r *csrReader) readRow() (bad *Error, err error) {
	end, err := r.starts.integer()
	if err != nil {
		return nil, err
	}
	n := end - r.start
	if n < 0 || n > int64(r.cols) || end > r.data.n {
		return nil, r.src.fail("row %d: indptr is not what it was: the file changes while it is read", r.next)
	}
	r.start = end
	r.entries = r.entries[:0]
	for range n {
		column, err := r.indices.integer()
		if err != nil {
			return nil, err
		}
		if column < 0 || column >= int64(r.cols) {
			return nil, r.src.fail("row %d has a number in column %d of %s: the file is damaged", r.next, column, thousands(r.cols))
		}
		b, err := r.data.element()
		if err != nil {
			return nil, err
		}
		var x [1]float32
		if r.data.dtype.float32s(x[:], b) >= 0 && bad == nil {
			bad = &Error{File: r.src.name, Col: int(column), Err: r.data.dtype.notFinite(b)}
		}
		r.entries = append(r.entries, entry{uint32(column), x[0]})
	}
	return bad, nil
}

func (r *csrReader) closeMembers() {
	for _, v := range []*vector{r.starts, r.indices, r.data} {
		if v != nil {
			v.close()
		}
	}
}

func (r *csrReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fileError(r.src.name, os.ErrClosed)
	r.closeMembers()
	return r.src.close()
}

// openVector opens a member of one dimension.
func openVector(src source, f *zip.File) (*vector, error) {
	m, err := openMember(src, f)
	if err != nil {
		return nil, err
	}
	h, err := readNPYHeader(m)
	if err == nil && !h.vector {
		err = m.fail("has two dimensions, where one is expected")
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return &vector{src: m, dtype: h.dtype, n: int64(h.rows), at: h.data, end: m.size}, nil
}

func (v *vector) close() { _ = v.src.close() } // nothing was written
