package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec/itemfile"
	"github.com/fddhdb/fddhdb/codec/vecfile"
)

// A Role is the role of a column of a file of items.
type Role byte

// Roles of columns. None is a column that no item can hold.
const (
	None Role = iota
	Key
	Labels
	Payload
	Code
	Vector
	Field
)

// A Column is a column of a file of items.
type Column struct {
	Name string
	Role Role
	Type string // of a field: string, int, float or bool; of None: its type in words
}

// Items is the itemfile.Reader of a .parquet file.
type Items struct {
	f       *file
	columns []*itemColumn
	row     int   // the next row
	err     error // the final error
}

// itemColumn is a column that is read.
type itemColumn struct {
	Column
	c       *column
	streams []*stream // of its leaves

	dense  []float32       // memory for the vector of the row
	sparse itemfile.Sparse // memory for the vector of the row
	sorter itemfile.Sorter
}

// typeNames are the types of fields by the kind of their leaf.
var typeNames = map[kind]string{boolean: "bool", signed: "int", unsigned: "int", float: "float", text: "string"}

// pandasIndex is the prefix of columns that pandas writes for an index without a name.
const pandasIndex = "__index_level_"

// OpenItems opens a .parquet file of items. Its columns are key, a string or an integer;
// labels, a list of strings; payload and code, bytes; vectors, as OpenVectors reads them;
// and fields, which are strings, integers, numbers and bools. The caller closes it.
func OpenItems(path string) (*Items, error) {
	f, err := open(path, path)
	if err != nil {
		return nil, err
	}
	r, err := newItems(f)
	if err != nil {
		_ = f.close() // nothing was written
		return nil, fail(path, err)
	}
	return r, nil
}

func newItems(f *file) (*Items, error) {
	r := &Items{f: f}
	for _, c := range f.columns {
		if len(c.name) > len(pandasIndex) && c.name[:len(pandasIndex)] == pandasIndex {
			continue
		}
		col := &itemColumn{Column: Column{Name: c.name}, c: c}
		if err := col.assign(); err != nil {
			return nil, fmt.Errorf("column %s: %w", quote(c.name), err)
		}
		r.columns = append(r.columns, col)
	}
	return r, nil
}

// assign finds the role of the column.
func (c *itemColumn) assign() error {
	first := c.c.leaves
	kind := unknown
	if c.c.form == scalar || c.c.form == lists {
		kind = first[0].kind
	}
	switch {
	case c.Name == "key":
		if c.c.form != scalar || kind != text && kind != signed && kind != unsigned {
			return fmt.Errorf("has %s: keys are strings, or integers", c.c.what)
		}
		c.Role = Key
	case c.Name == "labels":
		if c.c.form != lists || kind != text {
			return fmt.Errorf("has %s: labels are lists of strings", c.c.what)
		}
		c.Role = Labels
	case c.Name == "payload" && c.c.form == scalar && kind == binaries:
		c.Role = Payload
	case c.Name == "code" && c.c.form == scalar && kind == binaries:
		c.Role = Code
	case c.c.vector() || c.c.sparseVector():
		c.Role = Vector
	case c.c.form == scalar && kind != unknown && kind != binaries:
		c.Role = Field
		c.Type = typeNames[kind]
	default:
		c.Type = c.c.what
	}
	return nil
}

// Columns returns the columns that are read, in file order.
func (r *Items) Columns() []Column {
	out := make([]Column, len(r.columns))
	for i, c := range r.columns {
		out[i] = c.Column
	}
	return out
}

// Keep drops the columns for which keep returns false; they are not read. Call it
// before the first Next.
func (r *Items) Keep(keep func(Column) bool) {
	r.columns = slices.DeleteFunc(r.columns, func(c *itemColumn) bool { return !keep(c.Column) })
}

// Rows returns the number of items.
func (r *Items) Rows() int { return r.f.rows }

// Shape takes the shape from the schema, and dimensions from the first vector of a
// column or, if it is sparse, from all vectors.
func (r *Items) Shape() (*itemfile.Shape, error) {
	if r.err != nil && r.err != io.EOF {
		return nil, r.err
	}
	shape := &itemfile.Shape{}
	for _, c := range r.columns {
		switch c.Role {
		case Vector:
			v := itemfile.Vector{Name: c.Name, Sparse: c.c.form == sparse}
			var err error
			if v.Sparse {
				m := &sparseVectors{matrix: matrix{f: r.f}, column: c.c}
				err = m.measure()
				v.Dim = m.cols
			} else {
				m := &vectors{matrix: matrix{f: r.f}, leaf: c.c.leaves[0]}
				err = m.measure()
				v.Dim = m.cols
			}
			if err != nil {
				return nil, fail(r.f.name, err)
			}
			shape.Vectors = append(shape.Vectors, v)
		case Field:
			shape.Fields = append(shape.Fields, itemfile.Field{Name: c.Name, Type: c.Type})
		case Code:
			n, err := r.codeBytes(c.c.leaves[0])
			if err != nil {
				return nil, fail(r.f.name, err)
			}
			shape.Code = n
		}
	}
	return shape, nil
}

// codeBytes returns the length of the codes, which is that of the first one; 0 if the
// first row has none.
func (r *Items) codeBytes(l *leaf) (int, error) {
	if r.f.rows == 0 {
		return 0, nil
	}
	defer r.f.memory.restore(r.f.memory.free)
	s := r.f.stream(l)
	c, err := s.next()
	if err != nil || c.null {
		return 0, err
	}
	return len(c.bytes()), nil
}

// Next fills item with the next row.
func (r *Items) Next(item *itemfile.Item) error {
	switch {
	case r.err != nil:
		return r.err
	case r.row == r.f.rows:
		r.err = io.EOF
		return r.err
	}
	r.row++
	item.Reset()
	var bad error
	for _, c := range r.columns {
		if c.Role == None {
			continue
		}
		if c.streams == nil {
			for _, l := range c.c.leaves {
				c.streams = append(c.streams, r.f.stream(l))
			}
		}
		var cells [2]*cell
		for i, s := range c.streams {
			var err error
			if cells[i], err = s.next(); err != nil {
				r.err = fail(r.f.name, err)
				return r.err
			}
		}
		if err := c.take(item, cells); err != nil && bad == nil {
			bad = r.Fail(fmt.Errorf("column %s: %w", quote(c.Name), err))
		}
	}
	return bad
}

// Fail returns err as an error about the item that Next returned last.
func (r *Items) Fail(err error) error {
	return &vecfile.Error{File: r.f.name, Row: r.row - 1, Col: -1, Err: err}
}

// Close closes the file.
func (r *Items) Close() error {
	if errors.Is(r.err, os.ErrClosed) {
		return nil
	}
	r.err = fail(r.f.name, os.ErrClosed)
	return r.f.close()
}

// take copies a row of the column into the item. A null leaves the item without the
// value.
func (c *itemColumn) take(item *itemfile.Item, cells [2]*cell) error {
	l, first := c.c.leaves[0], cells[0]
	if c.c.form == sparse {
		if first.null != cells[1].null {
			return errors.New("one of the two lists is null")
		}
	}
	if first.null {
		if c.Role == Key {
			return errors.New("is null: an item needs a key; leave the column out for keys that are made")
		}
		return nil
	}
	switch c.Role {
	case Key:
		switch l.kind {
		case text:
			s, err := first.text()
			if err == nil && s == "" {
				err = errors.New("is empty: an item needs a key")
			}
			item.Key = s
			return err
		case unsigned:
			item.Key = strconv.FormatUint(uint64(l.int64(first.raw)), 10)
		default:
			item.Key = strconv.FormatInt(l.int64(first.raw), 10)
		}
	case Labels:
		if first.hole >= 0 {
			return fmt.Errorf("label %d is null", first.hole)
		}
		for _, b := range first.any {
			if !utf8.Valid(b) {
				return errText
			}
			item.Labels = append(item.Labels, string(b))
		}
	case Payload:
		item.Payload = first.bytes()
	case Code:
		item.Code = first.bytes()
	case Vector:
		return c.vector(item, cells)
	case Field:
		v, err := l.field(first)
		item.Fields[c.Name] = v
		return err
	}
	return nil
}

func (c *itemColumn) vector(item *itemfile.Item, cells [2]*cell) (err error) {
	col := 0
	if c.c.form == sparse {
		if c.sparse, col, err = c.c.sparseRow(c.sparse, cells[0], cells[1], maxCols, &c.sorter); err == nil {
			item.Sparse[c.Name] = c.sparse
		}
	} else {
		n := cells[0].len()
		if n > maxCols {
			return fmt.Errorf("has %d numbers, at most %d are possible", n, maxCols)
		}
		c.dense = slices.Grow(c.dense[:0], n)[:n]
		if col, err = c.c.leaves[0].vector(c.dense, cells[0]); err == nil {
			item.Vectors[c.Name] = c.dense
		}
	}
	if err != nil {
		return fmt.Errorf("number %d: %w", col, err)
	}
	return nil
}

// field returns the value of a field.
func (l *leaf) field(c *cell) (any, error) {
	switch l.kind {
	case boolean:
		return c.raw[0] != 0, nil
	case signed:
		return l.int64(c.raw), nil
	case unsigned:
		if x := uint64(l.int64(c.raw)); x > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large for an int, at most %d", x, int64(math.MaxInt64))
		}
		return l.int64(c.raw), nil
	case float:
		return l.float64(c.raw), nil
	}
	return c.text()
}

var errText = errors.New("is not UTF-8 text")

// text returns the only value of a cell as a string.
func (c *cell) text() (string, error) {
	b := c.bytes()
	if !utf8.Valid(b) {
		return "", errText
	}
	return string(b), nil
}

// bytes returns the bytes of the only value of a cell.
func (c *cell) bytes() []byte {
	if c.width > 0 {
		return c.raw
	}
	return c.any[0]
}
