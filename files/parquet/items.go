package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// Items is the table.Table of a .parquet file.
type Items struct {
	f       *file
	columns []*itemColumn
	looks   []table.Column // what Columns has found
	row     int            // the next row
	err     error          // the final error
}

// itemColumn is a column of a file of items.
type itemColumn struct {
	c       *column
	use     table.Use
	hot     bool      // of labels: the place of each 1 is one
	streams []*stream // of its leaves

	dense  []float32    // memory for the vector of the row
	sparse table.Sparse // memory for the vector of the row
	sorter table.Sorter
}

// typeNames are the types of fields by the kind of their leaf.
var typeNames = map[kind]string{boolean: "bool", signed: "int", unsigned: "int", float: "float", text: "string", times: "time"}

// pandasIndex is the prefix of columns that pandas writes for an index without a name.
const pandasIndex = "__index_level_"

// OpenItems opens a .parquet file of items, which is an table.Table: its columns are
// strings, integers, numbers, bools and times, lists of strings, bytes, and vectors as OpenVectors
// reads them. The caller closes it.
func OpenItems(path string) (table.Table, error) {
	f, err := open(path, path)
	if err != nil {
		return nil, err
	}
	return newItems(f), nil
}

func newItems(f *file) *Items {
	r := &Items{f: f}
	for _, c := range f.columns {
		if len(c.name) > len(pandasIndex) && c.name[:len(pandasIndex)] == pandasIndex {
			continue
		}
		r.columns = append(r.columns, &itemColumn{c: c})
	}
	return r
}

// Columns describes the columns by the schema, and by the first rows.
func (r *Items) Columns() ([]table.Column, error) {
	if r.looks != nil || r.err != nil && r.err != io.EOF {
		return r.looks, r.err
	}
	looks := make([]table.Column, len(r.columns))
	for i, c := range r.columns {
		var err error
		if looks[i], err = r.look(c.c); err != nil {
			return nil, fail(r.f.name, err)
		}
	}
	r.looks = looks
	return looks, nil
}

// look describes a column.
func (r *Items) look(c *column) (table.Column, error) {
	l := table.NewLook(c.name)
	kind := c.kind()
	if kind == table.Numbers || kind == table.Strings || kind == table.Scalars {
		if err := r.lookAt(c, &l); err != nil {
			return l.Column, err
		}
	}
	// The schema says more than values do, of which there may be none.
	l.Kind, l.Type = kind, c.what
	if kind == table.Scalars {
		l.Type = typeNames[c.leaves[0].kind]
	}
	return l.Column, nil
}

// lookAt looks at the first rows of a column of one leaf.
func (r *Items) lookAt(c *column, l *table.Look) error {
	defer r.f.memory.restore(r.f.memory.free)
	leaf := c.leaves[0]
	s := r.f.stream(leaf)
	for row := range min(r.f.rows, table.LookRows) {
		cell, err := s.next()
		switch {
		case err != nil:
			return err
		case cell.null:
		case c.form == scalar:
			l.Scalar(typeNames[leaf.kind], leaf.show(cell, 0))
		default:
			var start []string
			n := cell.len()
			for i := range n {
				whole := leaf.kind == signed || leaf.kind == unsigned
				if i >= table.ListStart && !whole { // whose numbers are not looked at
					break
				}
				text := leaf.show(cell, i)
				if i < table.ListStart {
					start = append(start, string(text))
				}
				if whole {
					l.Element(text)
				}
			}
			if leaf.kind == float {
				l.Whole, l.Flags = false, false
			}
			l.List(c.kind(), n, fmt.Sprintf("row %d", row), start)
		}
	}
	return nil
}

// show returns a value of a cell as text.
func (l *leaf) show(c *cell, i int) []byte {
	if l.kind == text {
		return c.any[i]
	}
	b := c.raw[i*l.width:]
	switch l.kind {
	case boolean:
		return strconv.AppendBool(nil, b[0] != 0)
	case signed:
		return strconv.AppendInt(nil, l.int64(b), 10)
	case unsigned:
		return strconv.AppendUint(nil, uint64(l.int64(b)), 10)
	case times:
		micros, err := l.time(b)
		if err != nil { // the row has it when it is read
			return nil
		}
		text := instant.Append(nil, micros)
		if l.unit == day {
			text = text[:len("2006-01-02")]
		}
		return text
	}
	return strconv.AppendFloat(nil, l.float64(b), 'g', -1, 8*max(l.width, 4))
}

// named is show of a value that is to be a name.
func (l *leaf) named(c *cell, i int) ([]byte, error) {
	if l.kind == times {
		if _, err := l.time(c.raw[i*l.width:]); err != nil {
			return nil, err
		}
	}
	return l.show(c, i), nil
}

// kind returns what the values of the column are for items.
func (c *column) kind() table.Kind {
	var kind kind
	if c.form == scalar || c.form == lists {
		kind = c.leaves[0].kind
	}
	switch {
	case c.vector():
		return table.Numbers
	case c.sparseVector():
		return table.SparseVectors
	case c.form == lists && kind == text:
		return table.Strings
	case c.form == scalar && kind == binaries:
		return table.Bytes
	case c.form == scalar && typeNames[kind] != "":
		return table.Scalars
	}
	return table.Other
}

// Map drops the columns that are left aside: they are not read.
func (r *Items) Map(uses []table.Use) error {
	columns, err := r.Columns()
	if err != nil {
		return err
	}
	if len(uses) != len(columns) || len(uses) != len(r.columns) {
		return fail(r.f.name, fmt.Errorf("%d uses of %d columns", len(uses), len(columns)))
	}
	var kept []*itemColumn
	for i, c := range r.columns {
		if err := columns[i].Suits(uses[i]); err != nil {
			return fail(r.f.name, err)
		}
		c.hot = columns[i].Hot()
		if c.use = uses[i]; c.use.Role != table.LeftAside {
			kept = append(kept, c)
		}
	}
	r.columns = kept
	return nil
}

// Rows returns the number of items.
func (r *Items) Rows() int { return r.f.rows }

// Shape takes the shape from the schema, and dimensions from the first vector of a
// column or, if it is sparse, from all vectors.
func (r *Items) Shape() (*table.Shape, error) {
	if r.err != nil && r.err != io.EOF {
		return nil, r.err
	}
	shape := &table.Shape{}
	for _, c := range r.columns {
		switch c.use.Role {
		case table.AsVector:
			v := table.Vector{Name: c.use.Name, Sparse: c.c.form == sparse}
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
		case table.AsField:
			shape.Fields = append(shape.Fields, table.Field{Name: c.use.Name, Type: typeNames[c.c.leaves[0].kind]})
		case table.AsCode:
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
func (r *Items) Next(item *table.Item) error {
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
			bad = r.Fail(fmt.Errorf("column %s: %w", quote(c.c.name), err))
		}
	}
	return bad
}

// Fail returns err as an error about the item that Next returned last.
func (r *Items) Fail(err error) error {
	return &files.Error{File: r.f.name, Row: r.row - 1, Col: -1, Err: err}
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
func (c *itemColumn) take(item *table.Item, cells [2]*cell) error {
	l, first := c.c.leaves[0], cells[0]
	if c.c.form == sparse {
		if first.null != cells[1].null {
			return errors.New("one of the two lists is null")
		}
	}
	if first.null {
		if c.use.Role == table.AsKey {
			return errors.New("is null: an item needs a key; leave the column out for keys that are made")
		}
		return nil
	}
	switch c.use.Role {
	case table.AsKey:
		if l.kind != text {
			b, err := l.named(first, 0)
			item.Key = string(b)
			return err
		}
		s, err := first.text()
		if err == nil && s == "" {
			err = errors.New("is empty: an item needs a key")
		}
		item.Key = s
		return err
	case table.AsLabels:
		return c.labels(item, first)
	case table.AsLabel:
		switch string(l.show(first, 0)) {
		case "true", "1":
			item.Labels = append(item.Labels, c.use.Name)
		case "false", "0":
		default:
			return fmt.Errorf("is %s, neither 0 nor 1, as the other values are, by which the column is a label", l.show(first, 0))
		}
	case table.AsPayload:
		item.Payload = first.bytes()
	case table.AsCode:
		item.Code = first.bytes()
	case table.AsVector:
		return c.vector(item, cells)
	case table.AsField:
		v, err := l.field(first)
		item.Fields[c.use.Name] = v
		return err
	}
	return nil
}

// labels adds the labels of a row.
func (c *itemColumn) labels(item *table.Item, row *cell) error {
	if row.hole >= 0 {
		return fmt.Errorf("label %d is null", row.hole)
	}
	l := c.c.leaves[0]
	n := 1
	if c.c.form == lists {
		n = row.len()
	}
	for i := range n {
		b, err := l.named(row, i)
		switch {
		case err != nil:
			return err
		case l.kind == float:
			label, err := table.WholeLabel(b)
			if err != nil {
				return err
			}
			if label != "" {
				item.Labels = append(item.Labels, label)
			}
			continue
		case !utf8.Valid(b):
			return errText
		case l.kind != text && c.hot && string(b) != "0" && string(b) != "1":
			return fmt.Errorf("number %d is %s, neither 0 nor 1, as the others are, by which it is of a matrix of labels", i, b)
		case l.kind != text && c.hot && string(b) == "0", l.kind != text && string(b) == "-1": // which stands for none
			continue
		case c.hot && c.c.form == lists:
			b = strconv.AppendInt(nil, int64(i), 10)
		}
		if c.c.form == lists {
			item.Labels = append(item.Labels, string(b))
		} else {
			item.Labels = c.use.Labels(item.Labels, string(b))
		}
	}
	return nil
}

func (c *itemColumn) vector(item *table.Item, cells [2]*cell) (err error) {
	col := 0
	if c.c.form == sparse {
		if c.sparse, col, err = c.c.sparseRow(c.sparse, cells[0], cells[1], maxCols, &c.sorter); err == nil {
			item.Sparse[c.use.Name] = c.sparse
		}
	} else {
		n := cells[0].len()
		if n == 0 && cells[0].hole < 0 {
			return nil
		}
		if n > maxCols {
			return fmt.Errorf("has %d numbers, at most %d are possible", n, maxCols)
		}
		c.dense = slices.Grow(c.dense[:0], n)[:n]
		if col, err = c.c.leaves[0].vector(c.dense, cells[0]); err == nil {
			item.Vectors[c.use.Name] = c.dense
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
	case times:
		micros, err := l.time(c.raw)
		if err != nil {
			return nil, err
		}
		return instant.Time(micros), nil
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
