package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// maxColumns bounds the columns of a table.
const maxColumns = 10_000

// jsonTable is the format of a table whose lines are objects of columns.
type jsonTable struct {
	*known
	jsonCell
	index map[string]int // name of a column -> its position
	uses  []table.Use
	rowOf []int // by column: the line in which it came last
}

func (t *jsonTable) Count() int   { return t.rows }
func (t *jsonTable) Line() int    { return t.line() }
func (t *jsonTable) Close() error { return t.src.Close() }

func (t *jsonTable) Columns() ([]table.Column, error) {
	var looks []table.Look
	t.index = map[string]int{}
	s := &t.scan
	good, bad := false, error(nil)
	for {
		line, err := t.next()
		if err == io.EOF {
			if !good && bad != nil {
				return nil, bad
			}
			t.rewind(Whole)
			return table.Found(looks), nil
		}
		if err != nil {
			return nil, err
		}
		if s.Reset(line); s.Kind() != jsontext.Object {
			continue
		}
		var many error
		// A line that is no object is an error of its row, when it is read.
		err = s.Object(func(name []byte) error {
			i, ok := t.index[string(name)]
			if !ok {
				if i = len(looks); i == maxColumns {
					many = t.Fail("brings one column more than the %d that are supported: are the names of its members values?", maxColumns)
					return many
				}
				t.index[string(name)] = i
				looks = append(looks, table.NewLook(string(name)))
			}
			if looks[i].Enough() && s.Kind() == jsontext.Array {
				_, err := s.Count()
				return err
			}
			is, err := t.what()
			if err == nil {
				err = looks[i].Look(is, &t.jsonCell, t.place)
			}
			return err
		})
		switch {
		case many != nil:
			return nil, many
		case err == nil:
			good = true
		case bad == nil:
			bad = t.fail(t.N, err)
		}
	}
}

func (t *jsonTable) Map(_ []table.Column, uses []table.Use) {
	t.uses, t.rowOf = uses, make([]int, len(uses))
}

func (t *jsonTable) Next(take func(column int, is table.Is, c table.Cell) error) (bad, err error) {
	line, err := t.next()
	if err != nil {
		return nil, err
	}
	s := &t.scan
	s.Reset(line)
	if kind := s.Kind(); kind != jsontext.Object {
		if len(bytes.TrimSpace(line)) == 0 {
			return errors.New("is blank: every line must hold an object; {} is one without anything"), nil
		}
		return fmt.Errorf("is %v, where an object is expected", kind), nil
	}
	bad = s.Object(func(name []byte) error {
		i, ok := t.index[string(name)]
		switch {
		case !ok:
			return fmt.Errorf("has %s, which was not there before: the file changes while it is read",
				matrix.Quote(name))
		case t.rowOf[i] == t.N:
			return fmt.Errorf("has %s twice", matrix.Quote(name))
		}
		t.rowOf[i] = t.N
		switch {
		case t.uses[i].Role != table.LeftAside:
			is, err := t.what()
			if err != nil {
				return fmt.Errorf("column %s: %w", matrix.Quote(name), err)
			}
			if is == table.Null { // as if it were not there
				return nil
			}
			return take(i, is, &t.jsonCell)
		case s.Kind() == jsontext.Array:
			_, err := s.Count()
			return err
		}
		return s.Skip()
	})
	if bad == nil {
		bad = s.End()
	}
	return bad, nil
}

// jsonCell is a value that comes next in a line.
type jsonCell struct {
	scan jsontext.Scanner
	is   table.Is // what it is
	text []byte   // of a number
}

// what says what the next value is. It reads those that are null, a number or an object.
func (c *jsonCell) what() (table.Is, error) {
	s := &c.scan
	var err error
	switch s.Kind() {
	case jsontext.Null:
		c.is, err = table.Null, s.Null()
	case jsontext.String:
		c.is = table.Text
	case jsontext.Bool:
		c.is = table.Bool
	case jsontext.Array:
		c.is = table.List
	case jsontext.Number:
		if c.is = table.Null; !s.NaN() {
			c.text, err = s.Number()
			c.is = numberIs(c.text)
		}
	default:
		c.is, err = table.Object, s.Skip()
	}
	return c.is, err
}

// numberIs says what a number is.
func numberIs(text []byte) table.Is {
	if bytes.ContainsAny(text, ".eE") {
		return table.Float
	}
	return table.Int
}

func (c *jsonCell) Text() ([]byte, error) {
	switch c.is {
	case table.Text:
		return c.scan.Text()
	case table.Bool:
		b, err := c.scan.Bool()
		return strconv.AppendBool(nil, b), err
	}
	return c.text, nil
}

func (c *jsonCell) List(f func(is table.Is, text []byte) bool) (n int, err error) {
	more := true
	err = c.scan.Array(func() error {
		n++
		if !more {
			return c.scan.Skip()
		}
		is, err := c.what()
		if err != nil {
			return err
		}
		var text []byte
		switch is {
		case table.List:
			err = c.scan.Skip()
		case table.Null, table.Object:
			text = nil
		default:
			text, err = c.Text()
		}
		more = err == nil && f(is, text)
		return err
	})
	return n, err
}

func (c *jsonCell) Floats(dst []float32) ([]float32, error) {
	return c.scan.Float32s(dst, matrix.MaxCols)
}

func (c *jsonCell) Float32() (float32, error) {
	text, err := c.Text()
	if err != nil {
		return 0, err
	}
	return cellFloat32(text)
}

func (c *jsonCell) Entries(*table.Sparse) error { return errors.ErrUnsupported }

func (c *jsonCell) Value(string) (any, error) {
	switch c.is {
	case table.Text:
		return c.scan.String()
	case table.Bool:
		return c.scan.Bool()
	}
	return json.Number(c.text), nil
}
