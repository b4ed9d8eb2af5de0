package files

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxMATBytes bounds a variable of version 5, as MATLAB does.
const maxMATBytes = 1<<31 - 1

// matBlock is the number of bytes of rows that are turned into columns at once.
const matBlock = 16 << 20

// A MATWriter writes a matrix of single precision as a .mat file of version 5, under a
// name, row by row. The file has columns one after the other, so blocks of rows of 16
// MiB are written to many places. It is not safe for concurrent use.
type MATWriter struct {
	w          io.WriterAt
	rows, cols int
	data       int64     // position of the numbers
	block      []float32 // rows that are still to be written
	written    int       // rows written before block
	column     []byte    // scratch memory of flush
}

// NewMATWriter starts a matrix of rows x cols. cols must be from 1 to 1,048,576, and
// the matrix at most 2 GiB.
func NewMATWriter(w io.WriterAt, name string, rows, cols int) (*MATWriter, error) {
	if err := checkMAT(name, rows, cols, 4*int64(rows)*int64(cols)); err != nil {
		return nil, err
	}
	size := 4 * rows * cols
	head := matHead(name, 7, rows, cols, matTag(nil, miSingle, size), size)
	m := &MATWriter{w: w, rows: rows, cols: cols, data: int64(len(head)), column: make([]byte, 0, 64<<10)}
	if _, err := w.WriteAt(head, 0); err != nil {
		return nil, err
	}
	// Elements are padded to a multiple of eight bytes.
	if pad := -size & 7; pad > 0 {
		if _, err := w.WriteAt(make([]byte, pad), m.data+int64(size)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func checkMAT(name string, rows, cols int, size int64) error {
	switch {
	case !matName(name):
		return fmt.Errorf("%q is no name of a variable of MATLAB: a letter, and up to 62 letters, digits and underscores", name)
	case rows < 0 || rows > math.MaxInt32 || cols < 1 || cols > maxCols:
		return fmt.Errorf("a .mat matrix of %d rows and %d columns cannot be written: columns are 1 to %s", rows, cols, thousands(maxCols))
	case size > maxMATBytes:
		return fmt.Errorf("a .mat matrix of %s bytes cannot be written, %s at most: write a .npy", thousands(size), thousands(int64(maxMATBytes)))
	}
	return nil
}

func matName(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// matTag appends the tag of an element of size bytes.
func matTag(b []byte, kind uint32, size int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, kind), uint32(size))
}

// matHead returns everything before the numbers of a file of one matrix. rest, and data
// bytes that follow it, come after the name.
func matHead(name string, class uint32, rows, cols int, rest []byte, data int) []byte {
	b := fmt.Appendf(nil, "%-124s", "MATLAB 5.0 MAT-file, written by fddhdb")
	b = append(b, 0, 1, 'I', 'M')
	padded := (len(name) + 7) &^ 7
	b = matTag(b, miMatrix, 16+16+8+padded+len(rest)+(data+7)&^7)
	b = binary.LittleEndian.AppendUint64(matTag(b, miUint32, 8), uint64(class))
	b = matTag(b, miInt32, 8)
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(rows)), uint32(cols))
	b = append(matTag(b, miInt8, len(name)), name...)
	b = append(b, make([]byte, padded-len(name))...)
	return append(b, rest...)
}

// Write writes the next row. The slice belongs to the caller.
func (m *MATWriter) Write(row []float32) error {
	if len(row) != m.cols {
		return fmt.Errorf("a row has %d values, the matrix %d columns", len(row), m.cols)
	}
	if m.written+len(m.block)/m.cols == m.rows {
		return fmt.Errorf("the matrix has all of its %d rows", m.rows)
	}
	m.block = append(m.block, row...)
	if 4*len(m.block) < matBlock {
		return nil
	}
	return m.flush()
}

// flush writes the block, column by column.
func (m *MATWriter) flush() error {
	n := len(m.block) / m.cols
	for c := range m.cols {
		m.column = m.column[:0]
		for i := range n {
			m.column = binary.LittleEndian.AppendUint32(m.column, math.Float32bits(m.block[i*m.cols+c]))
		}
		if _, err := m.w.WriteAt(m.column, m.data+4*(int64(c)*int64(m.rows)+int64(m.written))); err != nil {
			return err
		}
	}
	m.written += n
	m.block = m.block[:0]
	return nil
}

// Close completes the matrix. It returns an error if rows are missing. It does not
// close the underlying file.
func (m *MATWriter) Close() error {
	if err := m.flush(); err != nil {
		return err
	}
	if m.written < m.rows {
		return fmt.Errorf("%d of the %d rows of the matrix were not written", m.rows-m.written, m.rows)
	}
	return nil
}

// A MATSparseWriter writes a sparse matrix as a .mat file of version 5, under a name.
// Columns follow one another, so it holds the rows until Close: 12 bytes a number.
// Numbers have double precision, as in all sparse matrices of MATLAB. It is not safe
// for concurrent use.
type MATSparseWriter struct {
	w       io.Writer
	name    string
	cols    int
	rows    int
	numbers []matNumber
}

// NewMATSparseWriter starts a matrix of cols columns, 1 to 1,048,576. It writes nothing
// before Close.
func NewMATSparseWriter(w io.Writer, name string, cols int) (*MATSparseWriter, error) {
	if err := checkMAT(name, 0, cols, 0); err != nil {
		return nil, err
	}
	return &MATSparseWriter{w: w, name: name, cols: cols}, nil
}

// Write adds a row: value[e] in column index[e], each column once. The slices belong to
// the caller.
func (m *MATSparseWriter) Write(index []uint32, value []float32) error {
	if len(index) != len(value) {
		return fmt.Errorf("row %d has %d columns and %d values", m.rows, len(index), len(value))
	}
	for e, j := range index {
		if int64(j) >= int64(m.cols) {
			return fmt.Errorf("row %d: column %d of %d", m.rows, j, m.cols)
		}
		m.numbers = append(m.numbers, matNumber{uint32(m.rows), j, value[e]})
	}
	m.rows++
	return nil
}

// Close writes the matrix. It does not close the underlying writer.
func (m *MATSparseWriter) Close() error {
	n := len(m.numbers)
	if err := checkMAT(m.name, m.rows, m.cols, 8*int64(n)); err != nil {
		return err
	}
	// Within a column rows ascend already.
	slices.SortStableFunc(m.numbers, func(a, b matNumber) int { return cmp.Compare(a.column, b.column) })
	even := func(b []byte) []byte { return append(b, make([]byte, -len(b)&7)...) }
	rows := matTag(nil, miInt32, 4*n)
	starts := matTag(nil, miInt32, 4*(m.cols+1))
	at := 0
	for j := range m.cols + 1 {
		starts = binary.LittleEndian.AppendUint32(starts, uint32(at))
		for ; at < n && int(m.numbers[at].column) == j; at++ {
			rows = binary.LittleEndian.AppendUint32(rows, m.numbers[at].row)
		}
	}
	b := matTag(append(even(rows), even(starts)...), miDouble, 8*n)
	b = matHead(m.name, mxSparse, m.rows, m.cols, b, 8*n)
	// The capacity of the matrix, in the place beside its class. MATLAB requires at
	// least one.
	binary.LittleEndian.PutUint32(b[matHeader+20:], uint32(max(n, 1)))
	for _, x := range m.numbers {
		if len(b) > 64<<10 {
			if _, err := m.w.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(x.value)))
	}
	_, err := m.w.Write(b)
	return err
}
