package parquet

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Open opens the column of vectors that the source names, or the only one. Rows are items. A column of lists
// of numbers, of any or fixed length, is dense. A structure of the lists i, columns, and v, numbers, is
// sparse; all columns are read to find the greatest.
//
// A row that is null, or whose list has another length than the first, is an error that costs that row. A
// page is kept in memory.
func Open(src matrix.Source) (*matrix.Vectors, error) {
	f, err := newFile(src)
	if err != nil {
		return nil, matrix.FileError(src.Name, err)
	}
	v, err := f.vectors(src.Member)
	if err != nil {
		f.z.close()
		return nil, matrix.FileError(src.Name, err)
	}
	return v, nil
}

// vectors opens a column of vectors, or the only one.
func (f *file) vectors(member string) (*matrix.Vectors, error) {
	var found []*column
	var named *column // member
	var names, rest []string
	for _, c := range f.columns {
		if c.name == member {
			named = c
		}
		if c.vector() || c.sparseVector() {
			found = append(found, c)
			names = append(names, matrix.Quote(c.name))
		} else {
			rest = append(rest, matrix.Quote(c.name))
		}
	}
	c := named
	switch {
	case member != "" && named == nil:
		return nil, fmt.Errorf("has no column %s: there is %s", matrix.Quote(member),
			matrix.Names(append(names, rest...)))
	case member != "" && !slices.Contains(found, named):
		return nil, fmt.Errorf("column %s has %s: vectors are lists of numbers, or structures of the lists i and v", matrix.Quote(member), named.what)
	case member != "":
	case len(found) == 0:
		return nil, fmt.Errorf("has no column of vectors, which are lists of numbers: there is %s",
			matrix.Names(rest))
	case len(found) > 1:
		return nil, fmt.Errorf("has several columns of vectors: say which with %s:NAME, NAME being one of %s",
			f.Name, matrix.Names(names))
	default:
		c = found[0]
	}
	if f.rows == 0 {
		return nil, errors.New("has no rows, so that the number of columns is unknown")
	}
	cols, err := f.measure(c)
	if err != nil {
		return nil, err
	}
	first := f.stream(c.leaves[0])
	format := matrix.Format{Name: f.Name, Rows: f.rows, Cols: cols, Closer: f}
	if !c.sparseVector() {
		format.Dense = func(dst []float32) error {
			row, err := first.next()
			if err != nil {
				return err
			}
			return c.leaves[0].vector(dst, row)
		}
		return matrix.New(format), nil
	}
	second := f.stream(c.leaves[1])
	format.Sparse, format.AtLeast = true, true
	format.Entries = func(x *matrix.Sparse) error {
		index, err := first.next()
		if err != nil {
			return err
		}
		value, err := second.next()
		if err != nil {
			return err
		}
		return c.entries(x, index, value, cols)
	}
	return matrix.New(format), nil
}

// measure returns the number of columns of vectors: the length of the first list, or of sparse ones one more
// than the greatest column.
func (f *file) measure(c *column) (cols int, err error) {
	defer f.memory.restore(f.memory.free)
	l := c.leaves[0]
	s := f.stream(l)
	for range f.rows {
		row, err := s.next()
		if err != nil {
			return 0, err
		}
		n := row.len()
		if !c.sparseVector() {
			if cols = n; row.null || n == 0 || row.hole >= 0 {
				cols = 0
				continue
			}
			break
		}
		for i := range n {
			j := l.int64(row.raw[i*l.width:])
			if j >= matrix.MaxCols {
				return 0, fmt.Errorf("column %s has a number in column %d of a vector, which has at most %d",
					matrix.Quote(c.name), j, matrix.MaxCols)
			}
			cols = max(cols, int(j)+1)
		}
	}
	switch {
	case c.sparseVector():
		return max(cols, 1), nil // if no vector has any number
	case cols == 0:
		return 0, fmt.Errorf("column %s has no vector, so that the number of columns is unknown",
			matrix.Quote(c.name))
	}
	if err := matrix.CheckCols(int64(cols), ""); err != nil {
		return 0, fmt.Errorf("column %s %w", matrix.Quote(c.name), err)
	}
	return cols, nil
}

var (
	errNull   = errors.New("is null, which no number of a vector may be: replace it or drop the row")
	errVector = errors.New("the vector is null: drop the row")
)

// vector writes a row of numbers to dst.
func (l *leaf) vector(dst []float32, c *cell) error {
	switch {
	case c.null:
		return matrix.Bad(0, errVector)
	case c.hole >= 0:
		return matrix.Bad(c.hole, errNull)
	case c.len() != len(dst):
		return matrix.Bad(c.len(), fmt.Errorf("has %d numbers where the first vector has %d", c.len(),
			len(dst)))
	}
	return l.float32s(dst, c.raw)
}

// float32s writes numbers to dst.
func (l *leaf) float32s(dst []float32, raw []byte) error {
	if i := l.numbers.Float32s(dst, raw); i >= 0 {
		return matrix.Bad(i, l.numbers.NotFinite(raw[i*l.width:]))
	}
	return nil
}

// entries appends a vector of cols columns from the rows of its two lists.
func (c *column) entries(x *matrix.Sparse, index, value *cell, cols int) error {
	li, n := c.leaves[0], index.len()
	switch {
	case index.null || value.null:
		return matrix.Bad(0, errVector)
	case index.hole >= 0 || value.hole >= 0:
		return matrix.Bad(0, errNull)
	case n != value.len():
		return matrix.Bad(0, fmt.Errorf("has %d columns and %d numbers", n, value.len()))
	case n > cols:
		return matrix.Bad(0, fmt.Errorf("has %d numbers in %d columns", n, cols))
	}
	first := len(x.Index)
	for i := range n {
		j := li.int64(index.raw[i*li.width:])
		if j < 0 || j >= int64(cols) {
			return matrix.Bad(0, fmt.Errorf("has a number in column %d of %d", j, cols))
		}
		x.Index = append(x.Index, uint32(j))
	}
	x.Value = slices.Grow(x.Value, n)[:first+n]
	err := c.leaves[1].float32s(x.Value[first:], value.raw)
	if bad := new(matrix.BadValue); errors.As(err, &bad) {
		return matrix.Bad(int(x.Index[first+bad.At]), bad.Err)
	}
	return err
}
