package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

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
		return nil, fmt.Errorf("a sparse matrix of %d columns cannot be written: 1 to %s are possible", cols, matrix.Thousands(matrix.MaxCols))
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
			return fmt.Errorf("row %d: column %d of %d at place %d: columns ascend, each once", len(w.starts)-1, j, w.cols, e)
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
	descr, integer := "<i4", func(b []byte, x int64) []byte { return binary.LittleEndian.AppendUint32(b, uint32(x)) }
	if len(w.index) > math.MaxInt32 {
		descr, integer = "<i8", func(b []byte, x int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(x)) }
	}
	shape := []int64{int64(len(w.starts) - 1), int64(w.cols)}
	one := func(n int) string { return fmt.Sprintf("(%d,)", n) }
	for _, m := range []struct {
		name, descr, shape string
		elements           int
		element            func(b []byte, i int) []byte
	}{
		{"indices", descr, one(len(w.index)), len(w.index), func(b []byte, i int) []byte { return integer(b, int64(w.index[i])) }},
		{"indptr", descr, one(len(w.starts)), len(w.starts), func(b []byte, i int) []byte { return integer(b, w.starts[i]) }},
		{"format", "|S3", "()", 1, func(b []byte, _ int) []byte { return append(b, "csr"...) }},
		{"shape", "<i8", one(2), 2, func(b []byte, i int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(shape[i])) }},
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
