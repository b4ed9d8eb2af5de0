package matrix

import (
	"io"
	"math"
)

// A Run is a run of numbers of one type, in a file or in a member of one, that is read from first to last.
type Run struct {
	Source Source
	Type   Type
	N      int64 // numbers
	At     int64 // position of the next block
	End    int64 // position behind the last number

	block []byte
	rest  []byte // part of block that is still to be read
}

// runBlock is the number of bytes that are read at once: a multiple of all sizes of numbers.
const runBlock = 32 << 10

// Element returns the next number, valid until the next call. There must be one.
func (r *Run) Element() ([]byte, error) {
	if len(r.rest) == 0 {
		n := min(runBlock, r.End-r.At)
		if int64(len(r.block)) < n {
			r.block = make([]byte, n)
		}
		r.rest = r.block[:n]
		if err := r.Source.ReadFull(r.rest, r.At); err != nil {
			return nil, err
		}
		r.At += n
		if r.Type.Big {
			swapBytes(r.rest, r.Type.Size)
		}
	}
	b := r.rest[:r.Type.Size]
	r.rest = r.rest[r.Type.Size:]
	return b, nil
}

// Integer returns the next number of a run of integers. Above the range of int64 it returns the largest
// int64.
func (r *Run) Integer() (int64, error) {
	b, err := r.Element()
	if err != nil {
		return 0, err
	}
	if r.Type.Kind == 'u' {
		return int64(min(r.Type.Word(b), math.MaxInt64)), nil
	}
	return r.Type.Signed(b), nil
}

// denseBlock is the number of bytes of rows that are read at once. It is large enough for a file in Fortran
// order, in which a block costs one read a column, and small enough to stay in the cache while its columns
// are turned into rows.
const denseBlock = 1 << 20

// denseRows is the least number of rows that are read at once from a file in Fortran order. With fewer rows a
// wide matrix would cost a read a value.
const denseRows = 64

// Dense is a matrix of numbers of one type, in C order or, column by column, in Fortran order. The file must
// be known to have them.
type Dense struct {
	Source     Source
	Type       Type
	Fortran    bool
	Rows, Cols int
	At         int64 // position of the numbers

	next   int    // the row that Next returns
	loaded int    // rows before this one have been loaded
	block  []byte // the rows that end at loaded
	rest   []byte // rows of block that are still to come
	column []byte // scratch memory: the part of a column in the block
}

// Vectors returns the rows as vectors.
func (m *Dense) Vectors() *Vectors {
	return New(Format{
		Name: m.Source.Name, Rows: m.Rows, Cols: m.Cols, Skip: m.skip, Closer: m.Source.Closer,
		Dense: func(dst []float32) error {
			row, err := m.Next()
			if err != nil {
				return err
			}
			if c := m.Type.Float32s(dst, row); c >= 0 {
				return Bad(c, m.Type.NotFinite(row[c*m.Type.Size:]))
			}
			return nil
		},
		Numbers: func(dst []float64) error {
			row, err := m.Next()
			for c := 0; c < len(dst) && err == nil; c++ {
				b := row[c*m.Type.Size:]
				if dst[c] = m.Type.Number(b); m.Type.Kind == 'b' && dst[c] > 1 {
					return Bad(c, m.Type.NotFinite(b))
				}
			}
			return err
		},
	})
}

func (m *Dense) rowBytes() int { return m.Cols * m.Type.Size }

// Next returns the bytes of the next row in C order and little-endian, whatever the order in the file, valid
// until the next call, and io.EOF after the last.
func (m *Dense) Next() ([]byte, error) {
	if m.next == m.Rows {
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
func (m *Dense) load() error {
	n := max(1, denseBlock/m.rowBytes())
	if m.Fortran {
		n = max(n, denseRows)
	}
	n = min(n, m.Rows-m.loaded)
	if m.block == nil {
		// This is at most the size of the file. Later blocks are no larger.
		m.block = make([]byte, n*m.rowBytes())
	}
	block := m.block[:n*m.rowBytes()]
	if m.Fortran {
		if err := m.loadColumns(block, n); err != nil {
			return err
		}
	} else if err := m.Source.ReadFull(block, m.At+int64(m.loaded)*int64(m.rowBytes())); err != nil {
		return err
	}
	if m.Type.Big {
		swapBytes(block, m.Type.Size)
	}
	m.loaded += n
	m.rest = block
	return nil
}

// loadColumns reads n rows of a matrix stored column by column.
func (m *Dense) loadColumns(block []byte, n int) error {
	size, stride := m.Type.Size, m.rowBytes()
	if m.column == nil {
		m.column = make([]byte, n*size)
	}
	column := m.column[:n*size]
	for c := range m.Cols {
		if err := m.Source.ReadFull(column, m.At+(int64(c)*int64(m.Rows)+int64(m.loaded))*int64(
			size)); err != nil {
			return err
		}
		for i := range n {
			copy(block[i*stride+c*size:][:size], column[i*size:])
		}
	}
	return nil
}

// skip leaves out the next n rows, or all that are left, without reading them.
func (m *Dense) skip(n int) {
	m.next = min(m.next+n, m.Rows)
	if m.next < m.loaded {
		m.rest = m.rest[len(m.rest)-(m.loaded-m.next)*m.rowBytes():]
		return
	}
	m.loaded, m.rest = m.next, nil
}
