package table

import (
	"bytes"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/internal/instant"
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
			typ := "string"
			if (l.Kind == Empty || l.Type == "time") && instant.IsDate(string(text)) {
				typ = "time"
			}
			l.Scalar(typ, text)
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
				l.Element(text)
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
