package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
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
// As in scipy, the columns of a row may come in any order, and numbers of one column are added up. Numbers
// that are 0 are dropped.

// csr is such a matrix. It reads three members side by side, a row at a time.
type csr struct {
	src                   matrix.Source
	rows, cols            int
	starts, indices, data *matrix.Run
	next                  int   // row
	start                 int64 // first entry of that row
}

func openCSR(src matrix.Source, members map[string]*zip.File) (*matrix.Vectors, error) {
	r := &csr{src: src}
	v, err := r.open(members)
	if err != nil {
		r.closers().Close()
	}
	return v, err
}

func (r *csr) open(members map[string]*zip.File) (*matrix.Vectors, error) {
	format, err := readFormat(r.src, members["format"])
	if err == nil && format != "csr" {
		err = r.src.Fail("holds a sparse matrix of format %s, and csr is read: write it with scipy.sparse.save_npz(FILE, m.tocsr())", matrix.Quote(format))
	}
	if err == nil {
		err = r.readShape(members["shape"])
	}
	if err == nil {
		err = r.openRows(members)
	}
	if err != nil {
		return nil, err
	}
	return matrix.New(matrix.Format{Name: r.src.Name, Rows: r.rows, Cols: r.cols, Sparse: true, Sum: true,
		Entries: r.entries,
		Closer:  append(r.closers(), r.src.Closer)}), nil
}

func (r *csr) openRows(members map[string]*zip.File) (err error) {
	for _, m := range []struct {
		name string
		to   **matrix.Run
	}{{"indptr", &r.starts}, {"indices", &r.indices}, {"data", &r.data}} {
		f := members[m.name]
		if f == nil {
			return r.src.Fail("is not a csr matrix: it has no member %q", m.name)
		}
		if *m.to, err = openRun(r.src, f, m.name != "data"); err != nil {
			return err
		}
	}
	switch {
	case r.starts.N != int64(r.rows)+1:
		return r.src.Fail("indptr has %s numbers, %s rows need one more than that: the file is damaged",
			matrix.Thousands(r.starts.N), matrix.Thousands(r.rows))
	case r.indices.N != r.data.N:
		return r.src.Fail("indices has %s numbers and data %s: the file is damaged",
			matrix.Thousands(r.indices.N), matrix.Thousands(r.data.N))
	}
	if err := r.checkStarts(members["indptr"]); err != nil {
		return err
	}
	_, err = r.starts.Integer() // the 0 at the start
	return err
}

// checkStarts reads and checks indptr once, as everything else depends on it.
func (r *csr) checkStarts(f *zip.File) error {
	v, err := openRun(r.src, f, true)
	if err != nil {
		return err
	}
	defer v.Source.Close()
	last := int64(0)
	for row := range r.rows + 1 {
		x, err := v.Integer()
		if err != nil {
			return err
		}
		switch {
		case row == 0 && x != 0:
			return v.Source.Fail("starts with %d, not with 0: the file is damaged", x)
		case x < last || x > r.data.N:
			return v.Source.Fail("row %d ends at %d of %d numbers, the one before at %d: the file is damaged",
				row-1, x, r.data.N, last)
		case x-last > int64(r.cols):
			return r.src.Fail("row %d has %s numbers in %s columns: add up what comes twice with m.sum_duplicates() and save it again", row-1, matrix.Thousands(x-last), matrix.Thousands(r.cols))
		}
		last = x
	}
	if last < r.data.N {
		return r.src.Fail("has %s numbers of which the last row ends at %s: drop the rest with m.prune() and save it again", matrix.Thousands(r.data.N), matrix.Thousands(last))
	}
	return nil
}

// readFormat reads the member with the name of the format of a sparse matrix.
func readFormat(src matrix.Source, f *zip.File) (string, error) {
	m, err := openMember(src, f)
	if err != nil {
		return "", err
	}
	defer m.Close()
	d, at, err := readDict(m)
	if err != nil {
		return "", err
	}
	const most = 64
	if n := m.Size - at; n < 0 || n > most || len(d.descr) < 2 {
		return "", m.Fail("names no format of a sparse matrix")
	}
	b := make([]byte, m.Size-at)
	if err := m.ReadFull(b, at); err != nil {
		return "", err
	}
	// It is bytes (|S3) or characters of four bytes each (<U3), padded with zeros.
	b = slices.DeleteFunc(b, func(c byte) bool { return c == 0 })
	return string(b), nil
}

func (r *csr) readShape(f *zip.File) error {
	v, err := openRun(r.src, f, true)
	if err != nil {
		return err
	}
	defer v.Source.Close()
	if v.N != 2 {
		return v.Source.Fail("has %s numbers, not two", matrix.Thousands(v.N))
	}
	rows, err := v.Integer()
	if err != nil {
		return err
	}
	if rows < 0 || rows > math.MaxUint32 {
		return r.src.Fail("has %d rows, 0 to %d are supported", rows, uint32(math.MaxUint32))
	}
	cols, err := v.Integer()
	if err != nil {
		return err
	}
	if err := matrix.CheckCols(cols, ""); err != nil {
		return r.src.Fail("%w", err)
	}
	r.rows, r.cols = int(rows), int(cols)
	return nil
}

// entries reads the entries of the next row, all of them: a number that is bad costs only the row.
func (r *csr) entries(x *matrix.Sparse) error {
	end, err := r.starts.Integer()
	if err != nil {
		return err
	}
	n := end - r.start
	if n < 0 || n > int64(r.cols) || end > r.data.N {
		return r.src.Fail("row %d: indptr is not what it was: the file changes while it is read", r.next)
	}
	r.start = end
	var bad error
	for range n {
		column, err := r.indices.Integer()
		if err != nil {
			return err
		}
		if column < 0 || column >= int64(r.cols) {
			return r.src.Fail("row %d has a number in column %d of %s: the file is damaged", r.next, column,
				matrix.Thousands(r.cols))
		}
		b, err := r.data.Element()
		if err != nil {
			return err
		}
		var v [1]float32
		if r.data.Type.Float32s(v[:], b) >= 0 && bad == nil {
			bad = matrix.Bad(int(column), r.data.Type.NotFinite(b))
		}
		x.Index, x.Value = append(x.Index, uint32(column)), append(x.Value, v[0])
	}
	r.next++
	return bad
}

func (r *csr) closers() (all matrix.Closers) {
	for _, v := range []*matrix.Run{r.starts, r.indices, r.data} {
		if v != nil {
			all = append(all, v.Source.Closer)
		}
	}
	return all
}

// openRun opens a member of one dimension.
func openRun(src matrix.Source, f *zip.File, integers bool) (*matrix.Run, error) {
	m, err := openMember(src, f)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(m)
	switch {
	case err != nil:
	case !h.vector:
		err = m.Fail("has two dimensions, where one is expected")
	case integers && h.kind.Kind != 'i' && h.kind.Kind != 'u':
		err = m.Fail("is of dtype %v, where integers are expected", h.kind)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return &matrix.Run{Source: m, Type: h.kind, N: int64(h.rows), At: h.data, End: m.Size}, nil
}

// A CSRWriter writes a sparse matrix like scipy.sparse.save_npz, compressed, with numbers of float32. The
// members of the archive follow one another, so it holds the rows until Close: 8 bytes a number and 8 a row.
// It is not safe for concurrent use.
type CSRWriter struct {
	w      io.Writer
	cols   int
	starts []int64 // start of each row in index and value
	index  []uint32
	value  []float32
}

// NewCSRWriter starts a matrix of cols columns, 1 to 1,048,576. It writes nothing before Close.
func NewCSRWriter(w io.Writer, cols int) (*CSRWriter, error) {
	if cols < 1 || cols > matrix.MaxCols {
		return nil, fmt.Errorf("a sparse matrix of %d columns cannot be written: 1 to %s are possible", cols,
			matrix.Thousands(matrix.MaxCols))
	}
	return &CSRWriter{w: w, cols: cols, starts: []int64{0}}, nil
}

// Write adds a row: value[e] in column index[e]. Columns ascend strictly. The slices belong to the caller.
func (w *CSRWriter) Write(index []uint32, value []float32) error {
	if len(index) != len(value) {
		return fmt.Errorf("row %d has %d columns and %d values", len(w.starts)-1, len(index), len(value))
	}
	for e, j := range index {
		if int64(j) >= int64(w.cols) || e > 0 && j <= index[e-1] {
			return fmt.Errorf("row %d: column %d of %d at place %d: columns ascend, each once",
				len(w.starts)-1, j, w.cols, e)
		}
	}
	w.index, w.value = append(w.index, index...), append(w.value, value...)
	w.starts = append(w.starts, int64(len(w.index)))
	return nil
}

// Close writes the matrix. It does not close the underlying writer.
func (w *CSRWriter) Close() error {
	archive := zip.NewWriter(w.w)
	// Both members of integers have the same type, as scipy requires.
	descr, integer := "<i4", func(b []byte, x int64) []byte {
		return binary.LittleEndian.AppendUint32(b,
			uint32(x))
	}
	if len(w.index) > math.MaxInt32 {
		descr, integer = "<i8", func(b []byte, x int64) []byte {
			return binary.LittleEndian.AppendUint64(b,
				uint64(x))
		}
	}
	shape := []int64{int64(len(w.starts) - 1), int64(w.cols)}
	one := func(n int) string { return fmt.Sprintf("(%d,)", n) }
	for _, m := range []struct {
		name, descr, shape string
		elements           int
		element            func(b []byte, i int) []byte
	}{
		{"indices", descr, one(len(w.index)), len(w.index),
			func(b []byte, i int) []byte { return integer(b, int64(w.index[i])) }},
		{"indptr", descr, one(len(w.starts)), len(w.starts),
			func(b []byte, i int) []byte { return integer(b, w.starts[i]) }},
		{"format", "|S3", "()", 1, func(b []byte, _ int) []byte { return append(b, "csr"...) }},
		{"shape", "<i8", one(2), 2,
			func(b []byte, i int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(shape[i])) }},
		{"data", "<f4", one(len(w.value)), len(w.value), func(b []byte, i int) []byte {
			return binary.LittleEndian.AppendUint32(b, math.Float32bits(w.value[i]))
		}},
	} {
		f, err := createMember(archive, m.name, zip.Deflate)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(f, 64<<10)
		b := head(m.descr, m.shape)
		for i := range m.elements {
			out.Write(b) // its error stays, and Flush returns it
			b = m.element(b[:0], i)
		}
		out.Write(b)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return archive.Close()
}
