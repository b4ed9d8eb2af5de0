package parquet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
)

// maxCols bounds the columns of a matrix, as in package files.
const maxCols = 1 << 20

// OpenVectors opens a column of vectors of a .parquet file: FILE.parquet:COLUMN, or the
// only column of vectors of FILE.parquet. Rows are items. A column of lists of numbers,
// of any or fixed length, is dense. A structure of the lists i, columns, and v,
// numbers, is sparse. Its Reader is a files.SparseReader whose Cols is one more than
// the greatest column; OpenVectors reads all columns to find it.
//
// A row that is null, or whose list has another length than the first, is an error that
// costs that row. The Reader keeps a page in memory. The caller closes it.
func OpenVectors(path string) (files.Reader, error) {
	name, member := path, ""
	if i := strings.LastIndex(strings.ToLower(path), ".parquet:"); i >= 0 {
		name, member = path[:i+len(".parquet")], path[i+len(".parquet:"):]
	}
	f, err := open(name, path)
	if err != nil {
		return nil, err
	}
	r, err := newVectors(f, member)
	if err != nil {
		_ = f.close() // nothing was written
		return nil, fail(path, err)
	}
	return r, nil
}

func newVectors(f *file, member string) (files.Reader, error) {
	var found []*column
	var names, rest []string
	for _, c := range f.columns {
		if c.vector() || c.sparseVector() {
			found = append(found, c)
			names = append(names, c.name)
		} else {
			rest = append(rest, c.name)
		}
	}
	var c *column
	switch {
	case member != "":
		if c = f.column(member); c == nil {
			return nil, fmt.Errorf("has no column %s: there is %s", quote(member), list(append(names, rest...)))
		}
		if !slices.Contains(found, c) {
			return nil, fmt.Errorf("column %s has %s: vectors are lists of numbers, or structures of the lists i and v", quote(member), c.what)
		}
	case len(found) == 0:
		return nil, fmt.Errorf("has no column of vectors, which are lists of numbers: there is %s", list(rest))
	case len(found) > 1:
		return nil, fmt.Errorf("has several columns of vectors: say which with %s:NAME, NAME being one of %s", f.name, list(names))
	default:
		c = found[0]
	}
	if f.rows == 0 {
		return nil, errors.New("has no rows, so that the number of columns is unknown")
	}
	if c.sparseVector() {
		r := &sparseVectors{matrix: matrix{f: f}, column: c}
		return r, r.measure()
	}
	r := &vectors{matrix: matrix{f: f}, leaf: c.leaves[0]}
	return r, r.measure()
}

// matrix is the common part of both readers of vectors.
type matrix struct {
	f    *file
	cols int
	row  int   // the next row
	err  error // the final error
}

func (m *matrix) Rows() int { return m.f.rows }
func (m *matrix) Cols() int { return m.cols }

func (m *matrix) Close() error {
	if errors.Is(m.err, os.ErrClosed) {
		return nil
	}
	m.err = fail(m.f.name, os.ErrClosed)
	return m.f.close()
}

// begin begins a row.
func (m *matrix) begin() error {
	if m.err == nil && m.row == m.f.rows {
		m.err = io.EOF
	}
	if m.err == nil {
		m.row++
	}
	return m.err
}

// end makes err final.
func (m *matrix) end(err error) error {
	m.err = fail(m.f.name, err)
	return m.err
}

// bad returns an error about the current row.
func (m *matrix) bad(col int, err error) error {
	return &files.Error{File: m.f.name, Row: m.row - 1, Col: min(col, m.cols-1), Err: err}
}

func (m *matrix) length(dst []float32) error {
	if m.err == nil && len(dst) != m.cols {
		return fail(m.f.name, fmt.Errorf("a row has %d values, the slice for it %d", m.cols, len(dst)))
	}
	return nil
}

// vectors is the Reader of a column of lists.
type vectors struct {
	matrix
	leaf *leaf
	s    *stream
}

// measure takes the number of columns from the first row that has a list.
func (r *vectors) measure() error {
	defer r.f.memory.restore(r.f.memory.free)
	s := r.f.stream(r.leaf)
	for range r.f.rows {
		c, err := s.next()
		if err != nil {
			return err
		}
		if n := c.len(); !c.null && n > 0 && c.hole < 0 {
			r.cols = n
			break
		}
	}
	switch {
	case r.cols == 0:
		return fmt.Errorf("column %s has no vector, so that the number of columns is unknown", quote(r.leaf.path[0]))
	case r.cols > maxCols:
		return fmt.Errorf("column %s has vectors of %d numbers, at most %d are supported", quote(r.leaf.path[0]), r.cols, maxCols)
	}
	r.s = r.f.stream(r.leaf)
	return nil
}

func (r *vectors) Next(dst []float32) error {
	if err := r.length(dst); err != nil {
		return err
	}
	if err := r.begin(); err != nil {
		return err
	}
	c, err := r.s.next()
	if err != nil {
		return r.end(err)
	}
	if i, err := r.leaf.vector(dst, c); err != nil {
		return r.bad(i, err)
	}
	return nil
}

// vector writes a row of numbers to dst. With an error it returns the column of the
// error.
func (l *leaf) vector(dst []float32, c *cell) (col int, err error) {
	switch {
	case c.null:
		return 0, errors.New("the vector is null: drop the row")
	case c.hole >= 0:
		return c.hole, errNull
	case c.len() != len(dst):
		return c.len(), fmt.Errorf("has %d numbers where the first vector has %d", c.len(), len(dst))
	}
	if i := l.float32s(dst, c.raw); i >= 0 {
		return i, l.notFinite(c.raw[i*l.width:])
	}
	return 0, nil
}

// sparseVectors is the Reader of a column of structures.
type sparseVectors struct {
	matrix
	column       *column // its two lists
	index, value *stream
	x            table.Sparse // memory for the vector of the row
	sorter       table.Sorter
}

// measure finds the greatest column.
func (r *sparseVectors) measure() error {
	defer r.f.memory.restore(r.f.memory.free)
	l := r.column.leaves[0]
	s := r.f.stream(l)
	for range r.f.rows {
		c, err := s.next()
		if err != nil {
			return err
		}
		for i := range c.len() {
			j := l.int64(c.raw[i*l.width:])
			if j >= maxCols {
				return fmt.Errorf("column %s has a number in column %d of a vector, which has at most %d", quote(r.column.name), j, maxCols)
			}
			r.cols = max(r.cols, int(j)+1)
		}
	}
	r.cols = max(r.cols, 1) // if no vector has any number
	r.index, r.value = r.f.stream(l), r.f.stream(r.column.leaves[1])
	return nil
}

// ColsAtLeast returns true: the file does not state the number of dimensions.
func (r *sparseVectors) ColsAtLeast() bool { return true }

func (r *sparseVectors) Next(dst []float32) error {
	if err := r.length(dst); err != nil {
		return err
	}
	if err := r.read(); err != nil {
		return err
	}
	clear(dst)
	for e, j := range r.x.Index {
		dst[j] = r.x.Value[e]
	}
	return nil
}

func (r *sparseVectors) NextSparse(index []uint32, value []float32) ([]uint32, []float32, error) {
	if err := r.read(); err != nil {
		return index, value, err
	}
	return append(index, r.x.Index...), append(value, r.x.Value...), nil
}

// read reads the next row.
func (r *sparseVectors) read() error {
	if err := r.begin(); err != nil {
		return err
	}
	index, err := r.index.next()
	if err != nil {
		return r.end(err)
	}
	value, err := r.value.next()
	if err != nil {
		return r.end(err)
	}
	if index.null || value.null {
		return r.bad(0, errors.New("the vector is null: drop the row"))
	}
	col := 0
	if r.x, col, err = r.column.sparseRow(r.x, index, value, r.cols, &r.sorter); err != nil {
		return r.bad(col, err)
	}
	return nil
}

// sparseRow makes a vector of cols columns from the rows of its two lists.
func (c *column) sparseRow(x table.Sparse, index, value *cell, cols int, sorter *table.Sorter) (_ table.Sparse, col int, err error) {
	li, lv := c.leaves[0], c.leaves[1]
	n := index.len()
	switch {
	case index.hole >= 0 || value.hole >= 0:
		return x, 0, errNull
	case n != value.len():
		return x, 0, fmt.Errorf("has %d columns and %d numbers", n, value.len())
	case n > cols:
		return x, 0, fmt.Errorf("has %d numbers in %d columns", n, cols)
	}
	x.Index, x.Value = x.Index[:0], slices.Grow(x.Value[:0], n)[:n]
	for i := range n {
		j := li.int64(index.raw[i*li.width:])
		if j < 0 || j >= int64(cols) {
			return x, 0, fmt.Errorf("has a number in column %d of %d", j, cols)
		}
		x.Index = append(x.Index, uint32(j))
	}
	if i := lv.float32s(x.Value, value.raw); i >= 0 {
		return x, int(x.Index[i]), lv.notFinite(value.raw[i*lv.width:])
	}
	x, err = sorter.Sort(x)
	return x, 0, err
}
