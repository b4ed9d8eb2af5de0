package files

import (
	"errors"
	"io"
	"os"
)

// npyBlock is the number of bytes of rows that are read at once. It is large enough for
// a file in Fortran order, in which a block costs one read a column, and small enough
// to stay in the cache while its columns are turned into rows.
const npyBlock = 1 << 20

// npyMinRows is the least number of rows that are read at once from a file in Fortran
// order. With fewer rows a wide matrix would cost a read a value.
const npyMinRows = 64

// npyMatrix yields the rows of a .npy file in C order and little-endian, whatever the
// order in the file.
type npyMatrix struct {
	npyHeader
	src    source
	next   int    // the row that nextRow returns
	loaded int    // rows before this one have been loaded
	block  []byte // the rows that end at loaded
	rest   []byte // rows of block that are still to come
	column []byte // scratch memory: the part of a column in the block
}

func newNPYMatrix(src source) (*npyMatrix, error) {
	h, err := readNPYHeader(src)
	if err != nil {
		return nil, err
	}
	return &npyMatrix{npyHeader: h, src: src}, nil
}

// oneRow makes one row of an array of one dimension.
func (m *npyMatrix) oneRow() error {
	if m.rows < 1 || m.rows > maxCols {
		return m.src.fail("is one vector of %s numbers: 1 to %s are supported; rows of one number have the shape (n, 1)", thousands(m.rows), thousands(maxCols))
	}
	m.rows, m.cols, m.fortran = 1, m.rows, false
	return nil
}

// nextRow returns the elements of the next row, valid until the next call, and
// io.EOF after the last.
func (m *npyMatrix) nextRow() ([]byte, error) {
	if m.next == m.rows {
		return nil, io.EOF
	}
	if m.next == m.loaded {
		if err := m.load(); err != nil {
			return nil, err
		}
	}
	m.next++
	row := m.rest[:m.rowBytes()]
	m.rest = m.rest[len(row):]
	return row, nil
}

// load reads the next block of rows.
func (m *npyMatrix) load() error {
	n := max(1, npyBlock/m.rowBytes())
	if m.fortran {
		n = max(n, npyMinRows)
	}
	n = min(n, m.rows-m.loaded)
	if m.block == nil {
		// The header has been checked against the size of the file, so this is at most
		// the size of the file. Later blocks are no larger.
		m.block = make([]byte, n*m.rowBytes())
	}
	block := m.block[:n*m.rowBytes()]
	if m.fortran {
		if err := m.loadColumns(block, n); err != nil {
			return err
		}
	} else if err := m.src.readFull(block, m.data+int64(m.loaded)*int64(m.rowBytes())); err != nil {
		return err
	}
	if m.dtype.big {
		swapBytes(block, m.dtype.size)
	}
	m.loaded += n
	m.rest = block
	return nil
}

// loadColumns reads n rows of a matrix stored column by column.
func (m *npyMatrix) loadColumns(block []byte, n int) error {
	size, stride := m.dtype.size, m.rowBytes()
	if m.column == nil {
		m.column = make([]byte, n*size)
	}
	column := m.column[:n*size]
	for c := range m.cols {
		at := m.data + (int64(c)*int64(m.rows)+int64(m.loaded))*int64(size)
		if err := m.src.readFull(column, at); err != nil {
			return err
		}
		for i := range n {
			copy(block[i*stride+c*size:][:size], column[i*size:])
		}
	}
	return nil
}

// skip leaves out the next n rows, or all that are left, without reading them.
func (m *npyMatrix) skip(n int) {
	m.next = min(m.next+n, m.rows)
	if m.next < m.loaded {
		m.rest = m.rest[len(m.rest)-(m.loaded-m.next)*m.rowBytes():]
		return
	}
	m.loaded, m.rest = m.next, nil
}

// at returns an error about an element of the row that nextRow returned last.
func (m *npyMatrix) at(col int, err error) error {
	return &Error{File: m.src.name, Row: m.next - 1, Col: col, Err: err}
}

// element returns the bytes of one element of a row.
func (m *npyMatrix) element(row []byte, col int) []byte {
	return row[col*m.dtype.size:][:m.dtype.size]
}

// npyReader is the Reader of a .npy file.
type npyReader struct {
	m   *npyMatrix
	err error // the final error
}

func openNPY(src source) (Reader, error) {
	m, err := newNPYMatrix(src)
	if err != nil {
		return nil, err
	}
	return &npyReader{m: m}, nil
}

func (r *npyReader) Rows() int { return r.m.rows }
func (r *npyReader) Cols() int { return r.m.cols }

func (r *npyReader) Next(dst []float32) error {
	if r.err != nil {
		return r.err
	}
	if len(dst) != r.m.cols {
		return r.m.src.fail("a row has %d values, the slice for it %d", r.m.cols, len(dst))
	}
	row, err := r.m.nextRow()
	if err != nil {
		r.err = err
		return err
	}
	if c := r.m.dtype.float32s(dst, row); c >= 0 {
		return r.m.at(c, r.m.dtype.notFinite(r.m.element(row, c)))
	}
	return nil
}

// Skip implements Skipper.
func (r *npyReader) Skip(n int) error {
	if r.err == nil {
		r.m.skip(n)
	}
	return nil
}

func (r *npyReader) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fileError(r.m.src.name, os.ErrClosed)
	return r.m.src.close()
}
