package itemfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/codec/internal/jsontext"
)

// layoutLines is the number of lines that decide on the layout of a .jsonl file.
const layoutLines = 100

// isTable reports whether the first lines are of a table, whose members are columns,
// and not of items: no line has what only items have, and some line has a member that
// items have not and that is no object.
func (r *jsonlReader) isTable() bool {
	defer func() {
		r.err = nil
		r.rewind()
	}()
	foreign := false
	var s jsontext.Scanner
	for range layoutLines {
		line, err := r.line()
		if err != nil {
			break
		}
		s.Reset(line)
		ours := false
		if s.Kind() != jsontext.Object || s.Object(func(name []byte) error {
			switch string(name) {
			case "vectors", "fields":
				ours = ours || s.Kind() == jsontext.Object
			case "code_from", "codes", "modalities":
				ours = true
			case "key", "labels", "payload", "code":
			default: // an object may be vectors or fields, misspelt
				foreign = foreign || s.Kind() != jsontext.Object
			}
			return s.Skip()
		}) != nil {
			continue
		}
		if ours {
			return false
		}
	}
	return foreign
}

// jsonlTable is the Table of a .jsonl file whose lines are objects of columns.
type jsonlTable struct {
	*jsonlReader
	looks []Look
	index map[string]int // name of a column -> its position
	uses  []Use
	rowOf []int       // by column: the row, from 1, in which it came last
	dense [][]float32 // by column: memory of its vector
}

func (t *jsonlTable) Columns() ([]Column, error) {
	if t.looks == nil {
		if err := t.look(); err != nil {
			return nil, err
		}
	}
	return columnsOf(t.looks), nil
}

// look reads all lines.
func (t *jsonlTable) look() error {
	if t.err != nil && t.err != io.EOF {
		return t.err
	}
	t.index = map[string]int{}
	t.rewind()
	defer func() {
		t.err = nil
		t.rewind()
	}()
	s := &t.item.scan
	for {
		line, err := t.line()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		s.Reset(line)
		if s.Kind() != jsontext.Object {
			continue
		}
		var many error
		// A line that is no object is an error of its row, when it is read.
		_ = s.Object(func(name []byte) error {
			i, ok := t.index[string(name)]
			if !ok {
				if len(t.looks) == maxColumns {
					many = t.Fail(fmt.Errorf("brings one column more than the %d that are supported: are the names of its members values?", maxColumns))
					return many
				}
				i = len(t.looks)
				t.index[string(name)] = i
				t.looks = append(t.looks, NewLook(string(name)))
			}
			return t.lookAt(&t.looks[i])
		})
		if many != nil {
			return many
		}
	}
}

// lookAt looks at the value that comes next.
func (t *jsonlTable) lookAt(l *Look) error {
	s := &t.item.scan
	switch kind := s.Kind(); kind {
	case jsontext.Null:
		return s.Null()
	case jsontext.String:
		text, err := s.Text()
		if err == nil {
			l.Scalar("string", text)
		}
		return err
	case jsontext.Bool:
		b, err := s.Bool()
		if err == nil {
			l.Scalar("bool", fmt.Append(nil, b))
		}
		return err
	case jsontext.Number:
		if s.NaN() {
			return nil
		}
		text, err := s.Number()
		if err == nil {
			l.Scalar(numberType(text), text)
		}
		return err
	case jsontext.Array:
		return t.lookAtList(l)
	default:
		if l.Enough() {
			return s.Skip()
		}
		err := s.Skip()
		if err == nil {
			l.Other("objects")
		}
		return err
	}
}

func (t *jsonlTable) lookAtList(l *Look) error {
	s := &t.item.scan
	if l.Enough() {
		_, err := s.Count()
		return err
	}
	n, strings, numbers := 0, 0, 0
	var start []string
	err := s.Array(func() (err error) {
		var text []byte
		n++
		switch s.Kind() {
		case jsontext.String:
			strings++
			text, err = s.Text()
		case jsontext.Number:
			numbers++
			if !s.NaN() {
				text, err = s.Number()
			}
		default:
			err = s.Skip()
		}
		if len(start) < ListStart {
			start = append(start, string(text))
		}
		return err
	})
	if err != nil {
		return err
	}
	switch n {
	case numbers:
		l.List(Numbers, n, t.place(), start)
	case strings:
		l.List(Strings, n, t.place(), start)
	default:
		l.Other("lists of other things")
	}
	return nil
}

// place names the line that was read last.
func (t *jsonlTable) place() string { return fmt.Sprintf("line %d", t.next) }

// numberType returns the type of a number.
func numberType(text []byte) string {
	if bytes.ContainsAny(text, ".eE") {
		return "float"
	}
	return "int"
}

func (t *jsonlTable) Map(uses []Use) error {
	if err := suit(columnsOf(t.looks), uses); err != nil {
		return failure(t.name, 0, err)
	}
	t.uses = uses
	t.rowOf, t.dense = make([]int, len(uses)), make([][]float32, len(uses))
	return nil
}

// Shape follows from the columns and their uses.
func (t *jsonlTable) Shape() (*Shape, error) {
	if t.err != nil && t.err != io.EOF {
		return nil, t.err
	}
	return shapeOf(columnsOf(t.looks), t.uses), nil
}

func (t *jsonlTable) Next(item *Item) error {
	if t.err != nil {
		return t.err
	}
	line, err := t.line()
	if err != nil {
		t.err = err
		return err
	}
	if err := t.decode(line, item); err != nil {
		return t.Fail(err)
	}
	return nil
}

func (t *jsonlTable) decode(line []byte, it *Item) error {
	it.Reset()
	s := &t.item.scan
	s.Reset(line)
	if kind := s.Kind(); kind != jsontext.Object {
		if len(bytes.TrimSpace(line)) == 0 {
			return errors.New("is blank: every line must hold an object; {} is one without anything")
		}
		return fmt.Errorf("is %v, where an object is expected", kind)
	}
	err := s.Object(func(name []byte) error {
		i, ok := t.index[string(name)]
		switch {
		case !ok || i >= len(t.uses):
			return fmt.Errorf("has %s, which was not there before: the file changes while it is read", quote(name))
		case t.rowOf[i] == t.next:
			return fmt.Errorf("has %s twice", quote(name))
		}
		t.rowOf[i] = t.next
		if err := t.take(i, it); err != nil {
			return fmt.Errorf("%s: %w", quote(name), err)
		}
		return nil
	})
	if err == nil {
		err = s.End()
	}
	return err
}

// take reads the value of a column into the item.
func (t *jsonlTable) take(i int, it *Item) (err error) {
	s, u := &t.item.scan, &t.uses[i]
	kind := s.Kind()
	if kind == jsontext.Null {
		return s.Null()
	}
	switch u.Role {
	case LeftAside:
		if kind == jsontext.Array {
			_, err = s.Count()
			return err
		}
		return s.Skip()
	case AsKey:
		it.Key, err = t.key(kind)
		return err
	case AsLabels:
		if kind == jsontext.Array {
			return s.Array(func() error { return t.label(s.Kind(), it) })
		}
		return t.label(kind, it)
	case AsLabel:
		on, err := t.flag(kind)
		if on {
			it.Labels = append(it.Labels, u.Name)
		}
		return err
	case AsVector:
		if kind != jsontext.Array {
			return fmt.Errorf("is %v, where a vector is expected, an array of numbers", kind)
		}
		x, err := s.Float32s(t.dense[i][:0], maxDim)
		if t.dense[i] = x; len(x) > 0 {
			it.Vectors[u.Name] = x
		}
		return err
	}
	if kind == jsontext.Number && s.NaN() {
		return nil
	}
	v, err := t.item.scalar(kind)
	if err == nil {
		it.Fields[u.Name] = v
	}
	return err
}

// key reads a key, which is a string or an integer.
func (t *jsonlTable) key(kind jsontext.Kind) (string, error) {
	s := &t.item.scan
	switch kind {
	case jsontext.String:
		key, err := s.String()
		if err == nil && key == "" {
			err = errNoKey
		}
		return key, err
	case jsontext.Number:
		text, err := s.Number()
		if err == nil && numberType(text) != "int" {
			err = fmt.Errorf("is %s: keys are strings, or integers", text)
		}
		return string(text), err
	}
	return "", fmt.Errorf("is %v: keys are strings, or integers", kind)
}

var errNoKey = errors.New("is empty: an item needs a key")

// label reads one label.
func (t *jsonlTable) label(kind jsontext.Kind, it *Item) (err error) {
	var label string
	s := &t.item.scan
	switch kind {
	case jsontext.String:
		label, err = s.String()
	case jsontext.Number:
		if s.NaN() {
			return nil
		}
		var text []byte
		if text, err = s.Number(); err == nil {
			label, err = wholeLabel(text)
		}
	default:
		return fmt.Errorf("is %v: labels are strings, or whole numbers", kind)
	}
	if label != "" {
		it.Labels = append(it.Labels, label)
	}
	return err
}

// flag reads whether the item has the label of a column.
func (t *jsonlTable) flag(kind jsontext.Kind) (bool, error) {
	s := &t.item.scan
	switch kind {
	case jsontext.Bool:
		return s.Bool()
	case jsontext.Number:
		if text, err := s.Number(); err != nil || string(text) == "0" || string(text) == "1" {
			return string(text) == "1", err
		}
	}
	return false, errFlag
}

var errFlag = errors.New("is neither true, 1, false nor 0, as the other values are, by which the column is a label")

// scalar reads the value of a field.
func (d *decoder) scalar(kind jsontext.Kind) (any, error) {
	s := &d.scan
	switch kind {
	case jsontext.String:
		return s.String()
	case jsontext.Bool:
		return s.Bool()
	case jsontext.Number:
		text, err := s.Number()
		return json.Number(text), err
	}
	return nil, fmt.Errorf("is %v, where a string, a number or a bool is expected", kind)
}
