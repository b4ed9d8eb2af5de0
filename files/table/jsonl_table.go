package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
)

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
		switch {
		case kind == jsontext.String:
			text, err := s.String()
			if text != "" {
				it.Labels = u.Labels(it.Labels, text)
			}
			return err
		case kind != jsontext.Array:
			return t.label(kind, it)
		case !t.looks[i].Hot():
			return s.Array(func() error { return t.label(s.Kind(), it) })
		}
		n := -1
		return s.Array(func() error {
			n++
			on, err := t.flag(s.Kind())
			if on {
				it.Labels = append(it.Labels, strconv.Itoa(n))
			}
			return err
		})
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
			label, err = WholeLabel(text)
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
