package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// items is the format of a .parquet file as a table.
type items struct {
	*file
	columns []*itemColumn
	row     int
}

// itemColumn is a column of a file of items, and its cell in the row that is read.
type itemColumn struct {
	*column
	used    bool
	streams []*stream // of its leaves; nil before they are read
	cells   [2]*cell
}

// pandasIndex is the prefix of columns that pandas writes for an index without a name.
const pandasIndex = "__index_level_"

// OpenItems opens a file of items: its columns are strings, integers, numbers, bools and times, lists of
// strings, bytes, and vectors as Open reads them.
func OpenItems(src matrix.Source) (*table.Table, error) {
	f, err := newFile(src)
	if err != nil {
		return nil, matrix.FileError(src.Name, err)
	}
	return f.items(), nil
}

func (f *file) items() *table.Table {
	r := &items{file: f}
	for _, c := range f.columns {
		if !strings.HasPrefix(c.name, pandasIndex) || c.name == pandasIndex {
			r.columns = append(r.columns, &itemColumn{column: c})
		}
	}
	return table.New(f.Name, r)
}

func (r *items) Count() int { return r.rows }
func (r *items) Line() int  { return 0 }

// Columns describes the columns by the schema, and by the first rows.
func (r *items) Columns() ([]table.Column, error) {
	columns := make([]table.Column, len(r.columns))
	for i, c := range r.columns {
		l := table.NewLook(c.name)
		kind := c.kind()
		if kind == table.Numbers || kind == table.Strings || kind == table.Scalars {
			if err := r.look(c, &l); err != nil {
				return nil, err
			}
		}
		// The schema says more than values do, of which there may be none.
		columns[i] = l.Found()
		if columns[i].Kind, columns[i].Type = kind, c.what; kind == table.Scalars {
			columns[i].Type = c.leaves[0].is().Field()
		}
	}
	return columns, nil
}

// look looks at the first rows of a column of one leaf.
func (r *items) look(c *itemColumn, l *table.Look) error {
	defer r.memory.restore(r.memory.free)
	s := r.stream(c.leaves[0])
	row := 0
	place := func() string { return fmt.Sprintf("row %d", row) }
	for ; row < min(r.rows, table.LookRows); row++ {
		cell, err := s.next()
		if err != nil {
			return err
		}
		values := *cell // without those that are null
		values.hole = -1
		c.cells[0] = &values
		_ = l.Look(c.is(), c, place) // the row has its error when it is read
	}
	return nil
}

// kind returns what the values of the column are for items.
func (c *column) kind() table.Kind {
	switch leaf := c.leaves[0]; {
	case c.vector():
		return table.Numbers
	case c.sparseVector():
		return table.SparseVectors
	case c.form == lists && leaf.kind == text:
		return table.Strings
	case c.form == scalar && leaf.kind == binaries:
		return table.Bytes
	case c.form == scalar && leaf.kind != unknown:
		return table.Scalars
	}
	return table.Other
}

// Map drops the columns that are left aside: they are not read.
func (r *items) Map(_ []table.Column, uses []table.Use) {
	for i, u := range uses {
		r.columns[i].used = u.Role != table.LeftAside
	}
}

// Measure returns the number of columns of vectors, or the bytes of codes, which is that of the first one; 0
// if the first row has none.
func (r *items) Measure(column int, u table.Use) (int, error) {
	c := r.columns[column]
	if u.Role == table.AsVector {
		return r.measure(c.column)
	}
	if r.rows == 0 {
		return 0, nil
	}
	defer r.memory.restore(r.memory.free)
	row, err := r.stream(c.leaves[0]).next()
	if err != nil || row.null {
		return 0, err
	}
	return len(row.bytes()), nil
}

func (r *items) Next(take func(column int, is table.Is, c table.Cell) error) (bad, err error) {
	if r.row == r.rows {
		return nil, io.EOF
	}
	r.row++
	for i, c := range r.columns {
		if !c.used {
			continue
		}
		if c.streams == nil {
			for _, l := range c.leaves {
				c.streams = append(c.streams, r.stream(l))
			}
		}
		for k, s := range c.streams {
			if c.cells[k], err = s.next(); err != nil {
				return nil, err
			}
		}
		if err := take(i, c.is(), c); err != nil && bad == nil {
			bad = err
		}
	}
	return bad, nil
}

// is says what values of the leaf are.
func (l *leaf) is() table.Is {
	return [...]table.Is{unknown: table.Object, boolean: table.Bool, signed: table.Int, unsigned: table.Int,
		float: table.Float,
		text:  table.Text, times: table.Time, binaries: table.Blob}[l.kind]
}

// is says what the value of the row is.
func (c *itemColumn) is() table.Is {
	switch {
	case c.form == sparse && c.cells[0].null && c.cells[1].null, c.form != sparse && c.cells[0].null:
		return table.Null
	case c.form == sparse:
		return table.Entries
	case c.form == lists:
		return table.List
	}
	return c.leaves[0].is()
}

func (c *itemColumn) Text() ([]byte, error) {
	if l := c.leaves[0]; l.kind != binaries {
		return l.show(c.cells[0], 0)
	}
	return c.cells[0].bytes(), nil
}

// show returns a value of a cell as text.
func (l *leaf) show(c *cell, i int) ([]byte, error) {
	if l.kind == text {
		return c.any[i], nil
	}
	b := c.raw[i*l.width:]
	switch l.kind {
	case boolean:
		return strconv.AppendBool(nil, b[0] != 0), nil
	case float:
		return strconv.AppendFloat(nil, l.numbers.Number(b), 'g', -1, 8*max(l.width, 4)), nil
	case unsigned:
		return strconv.AppendUint(nil, uint64(l.int64(b)), 10), nil
	case signed:
		return strconv.AppendInt(nil, l.int64(b), 10), nil
	}
	micros, err := l.time(b)
	if err != nil {
		return nil, err
	}
	text := instant.Append(nil, micros)
	if l.unit == day {
		text = text[:len("2006-01-02")]
	}
	return text, nil
}

// List calls f for the first elements only if they are of type float: such lists are no labels.
func (c *itemColumn) List(f func(is table.Is, text []byte) bool) (int, error) {
	row, l := c.cells[0], c.leaves[0]
	if row.hole >= 0 {
		return 0, fmt.Errorf("element %d is null", row.hole)
	}
	n := row.len()
	for i := range n {
		b, err := l.show(row, i)
		if err != nil {
			return 0, err
		}
		if !f(l.is(), b) || l.kind == float && i == table.ListStart {
			break
		}
	}
	return n, nil
}

func (c *itemColumn) Floats(dst []float32) ([]float32, error) {
	row := c.cells[0]
	n := row.len()
	if row.hole >= 0 {
		return dst, matrix.Bad(row.hole, errNull)
	}
	if n > matrix.MaxCols {
		return dst, fmt.Errorf("has %d numbers, at most %d are possible", n, matrix.MaxCols)
	}
	first := len(dst)
	dst = slices.Grow(dst, n)[:first+n]
	return dst, c.leaves[0].float32s(dst[first:], row.raw)
}

func (c *itemColumn) Float32() (float32, error) {
	var x [1]float32
	l := c.leaves[0]
	if l.kind != float && l.kind != signed && l.kind != unsigned {
		return 0, fmt.Errorf("is %s, where a number is expected", l.is())
	}
	if raw := c.cells[0].raw; l.numbers.Float32s(x[:], raw) >= 0 {
		return 0, l.numbers.NotFinite(raw)
	}
	return x[0], nil
}

func (c *itemColumn) Entries(x *table.Sparse) error {
	if c.cells[0].null != c.cells[1].null {
		return errors.New("one of the two lists is null")
	}
	return c.entries(x, c.cells[0], c.cells[1], matrix.MaxCols)
}

func (c *itemColumn) Value(string) (any, error) {
	l, row := c.leaves[0], c.cells[0]
	switch l.kind {
	case boolean:
		return row.raw[0] != 0, nil
	case signed:
		return l.int64(row.raw), nil
	case unsigned:
		if x := uint64(l.int64(row.raw)); x > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large for an int, at most %d", x, int64(math.MaxInt64))
		}
		return l.int64(row.raw), nil
	case float:
		return l.numbers.Number(row.raw), nil
	case times:
		micros, err := l.time(row.raw)
		if err != nil {
			return nil, err
		}
		return instant.Time(micros), nil
	}
	return string(row.bytes()), nil
}

// bytes returns the bytes of the only value of a cell.
func (c *cell) bytes() []byte {
	if c.width > 0 {
		return c.raw
	}
	return c.any[0]
}
