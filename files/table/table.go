package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Is says what a value of a row is.
type Is byte

// What values are.
const (
	Null Is = iota
	Text
	Bool
	Int
	Float
	Time
	List
	BareList // text that may be a list of strings without quotes, as [a, b]
	Entries  // a sparse vector
	Blob     // bytes
	Cut      // text that is an array without most of its numbers
	Object   // nothing that an item can hold
)

func (is Is) String() string {
	return [...]string{"null", "a string", "a bool", "a number", "a number", "a time", "a list", "a string",
		"a sparse vector", "bytes", "a cut array", "an object"}[is]
}

// Field returns the type of a field that has such values.
func (is Is) Field() string {
	return [...]string{Text: "string", BareList: "string", Bool: "bool", Int: "int", Float: "float",
		Time: "time", Object: ""}[is]
}

// A Cell reads the value of a column in the row in hand, once, by one of these.
type Cell interface {
	Text() ([]byte, error) // the value as text, or bytes
	// the elements of a list up to the first for which f is false; returns how many there are
	List(f func(is Is, text []byte) bool) (int, error)
	Floats(dst []float32) ([]float32, error) // a list of numbers, appended to dst
	Float32() (float32, error)               // a number of a vector
	Entries(x *Sparse) error                 // a sparse vector, appended to x in any order
	Value(typ string) (any, error)           // a value of a field of this type
}

// Rows is a format of tables: it reads the cells of each row.
type Rows interface {
	// rows; -1 before Columns has counted them
	Count() int
	// describes the columns, then starts at the first row
	Columns() ([]Column, error)
	Map(columns []Column, uses []Use) // which columns are used
	// hands over the cells of the next row; bad costs the row, err is final
	Next(take func(column int, is Is, c Cell) error) (bad error, err error)
	// of the row read last; 0 if there are none
	Line() int
	Close() error
}

// A Measurer is a format that says how long vectors and codes are where Columns does not.
type Measurer interface {
	Measure(column int, u Use) (int, error)
}

// A Table is the Items of a file whose columns have names of their own. Columns tells what they hold, and Map
// says what each of them becomes; only then are there a Shape and items.
type Table struct {
	name    string // of the file, for errors
	rows    Rows
	columns []Column
	uses    []Use
	hot     []bool // by column: of labels, the place of each 1 is one
	row     int    // the next one
	err     error  // the final error

	item   *Item
	dense  [][]float32 // by column: memory of its vector
	sparse []Sparse    // the same
	sorter matrix.Sorter
	wide   []*wide
}

// New returns the table of a format. name is that of the file, for errors.
func New(name string, rows Rows) *Table { return &Table{name: name, rows: rows} }

// Columns describes the columns, in file order. Of .jsonl and .csv it reads the whole file, of .parquet the
// schema and the first rows.
func (t *Table) Columns() (_ []Column, err error) {
	if t.err == nil && t.columns == nil {
		if t.columns, err = t.rows.Columns(); err != nil {
			return nil, matrix.FileError(t.name, err)
		}
	}
	return t.columns, t.err
}

// Map says what the columns become, one Use for each of Columns. A column that cannot become it is an error.
// Call it once, before Shape and Next.
func (t *Table) Map(uses []Use) error {
	columns, err := t.Columns()
	if err == nil && len(uses) != len(columns) {
		err = fmt.Errorf("%d uses of %d columns", len(uses), len(columns))
	}
	for i := 0; i < len(columns) && err == nil; i++ {
		err = columns[i].Suits(uses[i])
		t.hot = append(t.hot, columns[i].Hot())
	}
	if err != nil {
		return matrix.FileError(t.name, err)
	}
	t.uses, t.dense, t.sparse = uses, make([][]float32, len(uses)), make([]Sparse, len(uses))
	if err := t.spread(); err != nil {
		return matrix.FileError(t.name, err)
	}
	t.rows.Map(columns, uses)
	return nil
}

// Rows returns the number of rows, -1 before Columns has counted them.
func (t *Table) Rows() int { return t.rows.Count() }

// Shape follows from the columns and their uses.
func (t *Table) Shape() (*Shape, error) {
	if t.err != nil && t.err != io.EOF {
		return nil, t.err
	}
	shape := &Shape{}
	for i, u := range t.uses {
		c := &t.columns[i]
		if m, ok := t.rows.(Measurer); ok && (u.Role == AsVector && c.Dim == 0 || u.Role == AsCode) {
			n, err := m.Measure(i, u)
			if err != nil {
				return nil, matrix.FileError(t.name, err)
			}
			c.Dim = n
		}
		switch u.Role {
		case AsVector:
			shape.Vectors = append(shape.Vectors, Vector{Name: u.Name, Dim: c.Dim,
				Sparse: c.Kind == SparseVectors})
		case AsElement:
			if w := t.wide[i]; u.At == 0 {
				shape.Vectors = append(shape.Vectors, Vector{Name: u.Name, Dim: len(w.x)})
			}
		case AsField:
			shape.Fields = append(shape.Fields, Field{u.Name, c.Type})
		case AsCode:
			shape.Code = c.Dim
		}
	}
	return shape, nil
}

// Next fills item with the next row.
func (t *Table) Next(item *Item) error {
	if t.err != nil {
		return t.err
	}
	if t.row == t.rows.Count() {
		t.err = io.EOF
		return t.err
	}
	item.Reset()
	t.item = item
	for i, w := range t.wide {
		if w != nil && t.uses[i].At == 0 {
			w.n = 0
			clear(w.has)
		}
	}
	bad, err := t.rows.Next(t.take)
	if err != nil {
		if t.err = err; err != io.EOF {
			t.err = matrix.FileError(t.name, err)
		}
		return t.err
	}
	t.row++
	for i, w := range t.wide {
		if w != nil && t.uses[i].At == 0 && bad == nil {
			bad = t.whole(w, item)
		}
	}
	if bad != nil {
		return t.Fail(matrix.OfKey(item.Key, bad))
	}
	return nil
}

// Line implements Items.
func (t *Table) Line() int { return t.rows.Line() }

// Fail returns err as an error about the item that Next returned last.
func (t *Table) Fail(err error) error {
	return &matrix.Error{File: t.name, Line: t.rows.Line(), Row: t.row - 1, Col: -1, Err: err}
}

// Close closes the file. A second Close does nothing.
func (t *Table) Close() error {
	if errors.Is(t.err, os.ErrClosed) {
		return nil
	}
	t.err = matrix.FileError(t.name, os.ErrClosed)
	return t.rows.Close()
}

// take puts the value of a column into the item.
func (t *Table) take(i int, is Is, c Cell) error {
	if err := t.put(i, is, c); err != nil {
		return fmt.Errorf("column %s: %w", matrix.Quote(t.columns[i].Name), err)
	}
	return nil
}

func (t *Table) put(i int, is Is, c Cell) (err error) {
	u, it := &t.uses[i], t.item
	if is == Null {
		if u.Role == AsKey {
			return errNoKey
		}
		return nil
	}
	switch u.Role {
	case AsKey:
		if is != Text && is != Int && is != Time {
			return fmt.Errorf("is %s: keys are strings, integers or times", is.what(c))
		}
		key, err := text(c)
		if err == nil && key == "" {
			err = errNoKey
		}
		if err == nil { // else errors would name it
			it.Key = key
		}
		return err
	case AsLabels:
		return t.labels(i, is, c)
	case AsLabel:
		b, err := c.Text()
		on, isFlag := flag(is, b)
		if err == nil && !isFlag {
			err = errFlag
		}
		if on {
			it.Labels = append(it.Labels, u.Name)
		}
		return err
	case AsPayload:
		it.Payload, err = c.Text()
	case AsCode:
		it.Code, err = c.Text()
	case AsVector:
		switch is {
		case List:
			x, err := c.Floats(t.dense[i][:0])
			if t.dense[i] = x; len(x) > 0 && err == nil {
				it.Vectors[u.Name] = x
			}
			return err
		case Entries:
			x := &t.sparse[i]
			x.Index, x.Value = x.Index[:0], x.Value[:0]
			if err = c.Entries(x); err == nil {
				err = t.sorter.Sort(x, false)
			}
			it.Sparse[u.Name] = *x
			return err
		}
		return fmt.Errorf("is %s, where a vector is expected, a list of numbers", is.what(c))
	case AsElement:
		if is == List || is == Entries || is == Object || is == Cut {
			return fmt.Errorf("is %s, where a number is expected", is)
		}
		w := t.wide[i]
		w.x[u.At], err = c.Float32()
		w.has[u.At] = true
		w.n++
		return err
	case AsField:
		if is == List || is == Object {
			return fmt.Errorf("is %s, where a string, a number or a bool is expected", is.what(c))
		}
		var v any
		if v, err = c.Value(u.Type); err == nil {
			it.Fields[u.Name] = v
		}
		if s, ok := v.(string); ok && !utf8.ValidString(s) {
			err = errUTF8
		}
	}
	return err
}

// what returns a value in words, and as text if it is some.
func (is Is) what(c Cell) string {
	if is == List || is == Entries || is == Blob || is == Object {
		return is.String()
	}
	b, err := c.Text()
	if err != nil {
		return is.String()
	}
	return fmt.Sprintf("%s, %s", is, matrix.Quote(b))
}

var (
	errNoKey = errors.New("is empty: an item needs a key; leave the column out for keys that are made")
	errUTF8  = errors.New("is not UTF-8 text: save the file in that encoding")
	errFlag  = errors.New("is neither true, 1, false nor 0, as the other values are, by which the column is a label")
)

// text returns the value of a cell as a string.
func text(c Cell) (string, error) {
	b, err := c.Text()
	if err == nil && !utf8.Valid(b) {
		err = errUTF8
	}
	return string(b), err
}

// flag returns whether an item has the label of a column.
func flag(is Is, b []byte) (on, isFlag bool) {
	switch s := strings.ToLower(string(b)); {
	case is != Bool && is != Int && is != Text:
	case s == "true", s == "1":
		return true, true
	case s == "false", s == "0":
		return false, true
	}
	return false, false
}

// labels adds the labels of a value to the item.
func (t *Table) labels(i int, is Is, c Cell) error {
	u, it := &t.uses[i], t.item
	switch is {
	case Text, Time:
		s, err := text(c)
		if err == nil && s != "" {
			it.Labels = u.Labels(it.Labels, s)
		}
		return err
	case Int, Float:
		b, err := c.Text()
		if err == nil {
			err = t.label(is, b, -1)
		}
		return err
	case List:
	default:
		return fmt.Errorf("is %s: labels are strings, or whole numbers", is.what(c))
	}
	n := 0
	var bad error
	_, err := c.List(func(is Is, b []byte) bool {
		place := -1
		if t.hot[i] {
			place = n
		}
		n++
		bad = t.label(is, b, place)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	return err
}

// label adds a label that is an element of a list, or a number. A place of 0 or more is the label where the
// element is 1.
func (t *Table) label(is Is, b []byte, place int) (err error) {
	var label string
	switch on, isFlag := flag(is, b); {
	case is == Null:
	case place >= 0 && !isFlag:
		return errFlag
	case place >= 0 && on:
		label = strconv.Itoa(place)
	case place >= 0:
	case is == Text && !utf8.Valid(b):
		return errUTF8
	case is == Text, is == Time:
		t.item.Labels = append(t.item.Labels, string(b)) // "" is a label, too
	case is == Int, is == Float:
		label, err = WholeLabel(b)
	default:
		return fmt.Errorf("is %s: labels are strings, or whole numbers", is)
	}
	if label != "" {
		t.item.Labels = append(t.item.Labels, label)
	}
	return err
}

// Found returns what looks have found.
func Found(looks []Look) []Column {
	columns := make([]Column, len(looks))
	for i := range looks {
		columns[i] = looks[i].Found()
	}
	return columns
}

// A Kind says what the values of a column are.
type Kind byte

// Kinds of columns.
const (
	Other         Kind = iota // values that no item can hold; Type says in words what they are
	Mixed                     // values of several kinds or types: rows with others than wanted are errors
	Empty                     // no row has a value
	Scalars                   // values of a field, of Type string, int, float, bool or time
	Numbers                   // lists of numbers
	Strings                   // lists of strings
	SparseVectors             // sparse vectors
	Bytes                     // bytes
)

// A Column describes a column of a table. What depends on values holds for the first thousand of them.
type Column struct {
	Name string
	Kind Kind
	Type string // of Scalars the type of the field, else the type in words

	Dim    int    // of Numbers: the length of nearly all lists; 0 if there was none
	Ragged string // of Numbers: in words, two rows whose lists differ in length, as many do; else ""
	Lists  bool   // of other columns: some values are lists of numbers
	Cut    string // the place of the first array that numpy cut when it printed it; else ""
	Whole  bool   // of Numbers: all are written as whole; of Scalars of Type float: all are whole, as 1.0 is
	Flags  bool   // all values are bools, or all are 0 or 1; of Numbers: all numbers are 0 or 1
	// of Scalars: nearly all values are numbers
	Numeric bool
	Unique  bool // of strings, ints and times: no value comes twice
	// of Type string in a .csv: the first values are lists of strings, some without quotes, as [a, b]: each
	// element is a label
	Listed bool
	// of Type string: the first value, cut as Example, that may be a list, as Separator finds one in it; ""
	// if none does
	Joined string

	Text    bool   // values are text, so that a field of strings can have all of them
	Example string // the first value as text, cut to a few characters
}

// A Role is what a column becomes.
type Role byte

// Roles of columns.
const (
	LeftAside Role = iota
	AsKey          // the key: a string, or an int or a time as text
	// labels: a string, a whole number or a time is one, a list of them several; -1 is none. See Hot
	AsLabels
	AsLabel   // the label Use.Name where the value is true or 1, and not where it is false or 0
	AsPayload // the payload: bytes
	AsCode    // the code: bytes
	AsVector  // the vector of modality Use.Name
	AsElement // number Use.At of the vector of modality Use.Name
	AsField   // the value of field Use.Name
)

// A Use says what a column becomes.
type Use struct {
	Role Role
	Name string // of the modality, field or label
	Type string // of a field: the type that the text of a .csv is parsed as
	At   int    // of an element

	Separator string // of labels: what stands between those of one string; "": a string is one label
}

// Labels appends the labels of a string to a list: one, or with a Separator those between it, without blanks
// around them, and none of an empty part.
func (u *Use) Labels(to []string, text string) []string {
	if u.Separator == "" {
		return append(to, text)
	}
	for part := range strings.SplitSeq(text, u.Separator) {
		if part = strings.TrimSpace(part); part != "" {
			to = append(to, part)
		}
	}
	return to
}

// Separator returns what may separate several labels in a text: the first of |, ; and , that has other text
// on both sides; "" if none has.
func Separator(text string) string {
	for _, s := range []string{"|", ";", ","} {
		if before, after, found := strings.Cut(text, s); found && strings.TrimSpace(before) != "" &&
			strings.TrimSpace(after) != "" {
			return s
		}
	}
	return ""
}

// Suits returns why the column cannot become what the use says, nil if it can.
func (c *Column) Suits(u Use) error {
	suits, want := true, ""
	switch u.Role {
	case AsKey:
		suits, want = c.named(), "keys are strings, integers or times"
	case AsLabels:
		suits, want = c.Kind == Strings || c.Kind == Numbers && c.Whole || c.named() ||
			c.Kind == Scalars && c.Type == "float" && c.Whole,
			"labels are strings or whole numbers, or lists of them"
	case AsLabel:
		suits, want = c.Kind == Scalars && c.Flags, "a column that is a label has bools, or 0 and 1"
	case AsPayload, AsCode:
		suits, want = c.Kind == Bytes, "payloads and codes are bytes"
	case AsVector:
		suits, want = c.Kind == Numbers || c.Kind == SparseVectors, "vectors are lists of numbers"
	case AsElement:
		suits, want = c.Numeric, "the numbers of a vector are expected"
	case AsField:
		suits, want = c.Kind == Scalars || c.Text && u.Type == "string",
			"fields are strings, integers, numbers, bools or times"
	}
	if suits || c.Kind == Empty || c.Kind == Mixed {
		return nil
	}
	return fmt.Errorf("column %s has %s: %s", matrix.Quote(c.Name), c.Holds(), want)
}

// named reports whether the values can be names of items or of classes.
func (c *Column) named() bool {
	return c.Kind == Scalars && (c.Type == "string" || c.Type == "int" || c.Type == "time")
}

// Holds returns what the values of the column are, in words.
func (c *Column) Holds() string {
	if c.Kind != Scalars {
		return c.Type
	}
	if words, ok := scalars[c.Type]; ok {
		return words
	}
	return c.Type + "s"
}

// scalars are the types of fields in words.
var scalars = map[string]string{"string": "strings", "int": "integers", "float": "numbers", "bool": "bools",
	"time": "times"}

// Hot reports whether the lists of the column are rows of a matrix of 0 and 1, all of one length of 2 or
// more: as labels, the place of each 1 is one. Lists of one number have a class each.
func (c *Column) Hot() bool { return c.Kind == Numbers && c.Flags && c.Dim > 1 && c.Ragged == "" }

// Describe returns what the column holds, with the length of its lists.
func (c *Column) Describe() string {
	if c.Kind == Numbers && c.Dim > 0 && c.Ragged == "" {
		return fmt.Sprintf("lists of %d numbers", c.Dim)
	}
	return c.Holds()
}

// An Item is one row of a file. Its slices and maps belong to the reader that has filled it, and are valid
// until the reader's next call.
type Item struct {
	Key     string               // "" if the file has no key
	Vectors map[string][]float32 // dense vectors, by name
	Sparse  map[string]Sparse    // sparse vectors, by name
	Labels  []string

	// Fields holds strings, bools, numbers and times, by name. Numbers are json.Number from .jsonl, and int64
	// or float64 if the file knows their type; times are text from .jsonl and .csv, else time.Time. Fields
	// that are null are not in it.
	Fields map[string]any

	// nil if the file has none.
	Payload []byte
	Code    []byte
}

// Sparse is a vector that holds only its nonzero numbers: Value[e] in column Index[e]. Columns ascend
// strictly.
type Sparse = matrix.Sparse

// Reset empties the item and keeps its memory; a reader begins with it.
func (it *Item) Reset() {
	if it.Vectors == nil {
		it.Vectors, it.Sparse, it.Fields = map[string][]float32{}, map[string]Sparse{}, map[string]any{}
	}
	clear(it.Vectors)
	clear(it.Sparse)
	clear(it.Fields)
	it.Key, it.Labels, it.Payload, it.Code = "", it.Labels[:0], nil, nil
}

// Items streams the items of a file, first to last.
type Items interface {
	// Rows returns the number of items. Of a Table it may be -1, unknown, before Columns.
	Rows() int

	// Shape returns the vectors and fields of the items, in order of first appearance: what a collection for
	// them needs. It reads a .jsonl file as a whole from its start, and goes back there.
	Shape() (*Shape, error)

	// Next fills item with the next one, and returns io.EOF after the last. A *files.Error with a Row of 0 or
	// more costs only that item, and the next call goes on. Any other error is final.
	Next(item *Item) error

	// Line returns the line of the item that Next returned last, 0 if the file has no lines.
	Line() int

	// Fail returns err as an error about that item, with its place.
	Fail(err error) error

	// Close closes the file. A second Close does nothing.
	Close() error
}

// A Shape describes the items of a file.
type Shape struct {
	Vectors []Vector // in order of first appearance
	Fields  []Field  // in order of first appearance
	Code    int      // bytes of the code that every item has; 0 if some item has none
}

// A Vector is a kind of vectors. Dim is the number of dimensions. If all vectors are sparse it is one more
// than the greatest column.
type Vector struct {
	Name   string
	Dim    int
	Sparse bool // all of them are sparse
}

// A Field is one kind of values: string, int, float, bool or time.
type Field struct{ Name, Type string }
