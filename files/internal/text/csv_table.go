package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// csvTable is the format of a table in a .csv, whose first line has the names of the columns, and the cell
// that is read.
type csvTable struct {
	*Records
	src     matrix.Source
	names   []string
	columns []table.Column
	uses    []table.Use
	rows    int

	cell []byte
	list []string // of strings that the cell is; nil if it is none
	scan jsontext.Scanner
}

// OpenCSVTable opens a table. In its cells a list is written as in JSON, or as Python writes a list of
// strings; an empty cell is no value.
func OpenCSVTable(src matrix.Source) (*table.Table, error) {
	t := &csvTable{Records: NewRecords(src.Name, src.Reader(), Whole, maxColumns), src: src, rows: -1}
	if err := t.header(); err != nil {
		return nil, matrix.FileError(src.Name, err)
	}
	return table.New(src.Name, t), nil
}

// record reads the next record that is not a blank line.
func (t *csvTable) record() (bad, err error) {
	for {
		if bad, err = t.Records.Next(); bad != nil || err != nil || !t.Empty {
			return bad, err
		}
	}
}

func (t *csvTable) header() error {
	bad, err := t.record()
	switch {
	case err == io.EOF:
		return errors.New("is empty: its first line has the names of the columns")
	case err != nil:
		return err
	}
	seen, numbers, wide := map[string]bool{}, true, len(t.Fields) >= 8
	for i, cell := range t.Fields {
		name := strings.TrimSpace(string(cell))
		switch {
		case bad != nil:
		case !utf8.ValidString(name):
			bad = errUTF8
		case seen[name] && name != "":
			bad = fmt.Errorf("has the column %s twice", matrix.Quote(name))
		}
		_, err := strconv.ParseFloat(name, 64)
		numbers = numbers && err == nil
		wide = wide && (name == strconv.Itoa(i) || name == strconv.Itoa(i+1))
		seen[name] = true
		t.names = append(t.names, name)
	}
	switch {
	case bad != nil:
	case numbers && !wide: // 0, 1, 2, ... are the names that pandas gives
		bad = errors.New("has only numbers, where the names of the columns are expected: write a header; vectors without one go by --vectors")
	}
	if bad != nil {
		return matrix.LineError(t.name, t.Records.Line, bad)
	}
	return nil
}

func (t *csvTable) Count() int   { return t.rows }
func (t *csvTable) Line() int    { return t.Records.Line }
func (t *csvTable) Close() error { return t.src.Close() }

func (t *csvTable) Columns() ([]table.Column, error) {
	looks := make([]table.Look, len(t.names))
	for i, name := range t.names {
		looks[i] = table.NewLook(name)
		looks[i].Text = true
	}
	place := func() string { return fmt.Sprintf("line %d", t.Records.Line) }
	for t.rows = 0; ; t.rows++ {
		bad, err := t.record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if bad != nil || len(t.Fields) != len(t.names) { // an error of the row, when it is read
			continue
		}
		for i, cell := range t.Fields {
			l := &looks[i]
			// Later cells change the type of a column of numbers or of text at most.
			if len(cell) == 0 || l.Enough() &&
				(l.Kind == table.Scalars && l.Type == "string" || l.Kind != table.Scalars && cell[0] == '[') {
				continue
			}
			t.cell = cell
			is := t.look()
			if cell[0] == '[' && is != table.List && l.Kind == table.Numbers { // an error of the row, too
				continue
			}
			if err := l.Look(is, t, place); err != nil {
				return nil, err
			}
		}
	}
	t.Restart(t.src.Reader())
	if _, err := t.record(); err != nil { // the header
		return nil, err
	}
	return table.Found(looks), nil
}

// look says what the cell is if nothing is known of its column.
func (t *csvTable) look() table.Is {
	if t.cell[0] != '[' {
		return textIs(string(t.cell))
	}
	t.list = nil
	if _, cut, ok := cellNumbers(t.cell); cut {
		return table.Cut
	} else if ok {
		return table.List
	}
	list, bare, ok := stringList(t.cell)
	switch t.list = list; {
	case ok && bare:
		return table.BareList
	case ok:
		return table.List
	}
	return table.Text
}

func (t *csvTable) Map(columns []table.Column, uses []table.Use) { t.columns, t.uses = columns, uses }

func (t *csvTable) Next(take func(column int, is table.Is, c table.Cell) error) (bad, err error) {
	bad, err = t.record()
	if err == io.EOF {
		err = matrix.FileError(t.name, err) // all rows have been counted
	}
	if bad != nil || err != nil {
		return bad, err
	}
	if len(t.Fields) != len(t.uses) {
		return fmt.Errorf("has another number of columns than the header, which has %d", len(t.uses)), nil
	}
	for i, cell := range t.Fields {
		if t.uses[i].Role == table.LeftAside {
			continue
		}
		t.cell = cell
		is, err := t.what(i)
		if err == nil {
			err = take(i, is, t)
		} else {
			err = fmt.Errorf("column %s: %w", matrix.Quote(t.names[i]), err)
		}
		if bad == nil { // the key may come behind it
			bad = err
		}
	}
	return bad, nil
}

// types are what values of a field are.
var types = map[string]table.Is{"string": table.Text, "bool": table.Bool, "int": table.Int,
	"float": table.Float, "time": table.Time}

// what says what the cell is for the use of its column.
func (t *csvTable) what(i int) (table.Is, error) {
	t.list = nil
	c := &t.columns[i]
	scalar := table.Text
	if c.Kind == table.Scalars {
		scalar = types[c.Type]
	}
	switch role := t.uses[i].Role; {
	case len(t.cell) == 0:
		return table.Null, nil
	case role == table.AsVector && t.cell[0] == '[':
		return table.List, nil
	case role != table.AsLabels:
		return scalar, nil
	case t.cell[0] == '[':
		list, bare, ok := stringList(t.cell)
		if ok && (!bare || c.Listed) {
			t.list = list
			return table.List, nil
		}
		if c.Kind == table.Numbers {
			return table.List, nil
		}
	}
	if c.Listed {
		return table.Text, fmt.Errorf("is %s, and no list such as [a, b], as the first cells are",
			matrix.Quote(t.cell))
	}
	return scalar, nil
}

func (t *csvTable) Text() ([]byte, error) { return t.cell, nil }

func (t *csvTable) List(f func(is table.Is, text []byte) bool) (n int, err error) {
	for _, s := range t.list {
		if n++; !f(table.Text, []byte(s)) {
			return len(t.list), nil
		}
	}
	if t.list != nil {
		return n, nil
	}
	return t.listNumbers(f)
}

func (t *csvTable) Floats(dst []float32) ([]float32, error) {
	t.scan.Reset(t.cell)
	start := len(dst)
	dst, err := t.scan.Float32s(dst, matrix.MaxCols)
	if err == nil {
		err = t.scan.End()
	}
	if err != nil {
		return t.floats(dst[:start], err)
	}
	return dst, nil
}

func (t *csvTable) Float32() (float32, error) { return cellFloat32(t.cell) }

// cellFloat32 returns the number that a cell is.
func cellFloat32(cell []byte) (float32, error) {
	if x, ok := jsontext.ParseFloat32(cell); ok {
		return x, nil
	}
	return parseFloat32(trim(cell))
}

func (t *csvTable) Entries(*table.Sparse) error { return errors.ErrUnsupported }

// Value returns a value of a field of a type. Of a type that is not known here it is the text.
func (t *csvTable) Value(typ string) (any, error) {
	switch typ {
	case "int", "float":
		return json.Number(strings.TrimSpace(string(t.cell))), nil
	case "bool":
		b, err := strconv.ParseBool(strings.TrimSpace(string(t.cell)))
		if err != nil {
			return nil, fmt.Errorf("%s is neither true nor false", matrix.Quote(t.cell))
		}
		return b, nil
	}
	return string(t.cell), nil
}
