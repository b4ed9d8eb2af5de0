package source

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// Fields is a file of fields: a CSV whose header declares them, or JSON, an object a
// line. It holds the text: values are parsed when their row comes, so that a bad value
// costs only its row.
type Fields struct {
	file     string
	Declared []db.Field // fields of the header; nil for JSON
	types    map[string]db.FieldType
	cells    [][]string        // CSV
	objects  []json.RawMessage // JSON
	lines    []int             // line in the file, by row
	row      int
}

// OpenFields reads a .csv or .jsonl file of fields.
func OpenFields(file string) (*Fields, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := &Fields{file: file}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	switch ext := strings.ToLower(filepath.Ext(file)); ext {
	case ".jsonl":
		s.splitJSON(b)
		return s, nil
	case ".parquet":
		return nil, exit.Usagef("--fields %s: fields are read from .csv or .jsonl; --items takes them from a .parquet, and --merge adds them to items that are there", file)
	}
	return s, s.readCSV(b)
}

func (s *Fields) splitJSON(b []byte) {
	line := 0
	for text := range bytes.Lines(b) {
		line++
		s.objects = append(s.objects, json.RawMessage(bytes.TrimSpace(text)))
		s.lines = append(s.lines, line)
	}
}

func (s *Fields) readCSV(b []byte) error {
	r := csv.NewReader(bytes.NewReader(b))
	next := 1 // the line on which the next row should be
	for {
		cells, err := r.Read()
		if err == io.EOF {
			break
		}
		var bad *csv.ParseError
		switch {
		case errors.Is(err, csv.ErrFieldCount):
			return exit.Failedf("%s: line %d has %s, the header %d", s.file, next, term.Plural(len(cells), "column", "columns"), len(s.Declared))
		case errors.As(err, &bad):
			return exit.Failedf("%s: line %d: %w", s.file, bad.Line, bad.Err)
		case err != nil:
			return exit.Failedf("%s: %w", s.file, err)
		}
		// The reader skips blank lines, which would shift the rows after them.
		line, _ := r.FieldPos(0)
		if line > next {
			return exit.Failedf("%s: line %d is blank, and rows follow: write \"\" for a row without values", s.file, next)
		}
		next = line + 1
		for _, c := range cells {
			next += strings.Count(c, "\n")
		}
		if s.Declared != nil {
			s.cells, s.lines = append(s.cells, cells), append(s.lines, line)
			continue
		}
		for i, c := range cells {
			f, err := textform.ParseField(strings.TrimSpace(c))
			if err != nil {
				return exit.Failedf("%s: line 1, column %d: %q: %w: the header says NAME:TYPE", s.file, i, c, err)
			}
			for _, other := range s.Declared {
				if other.Name == f.Name {
					return exit.Failedf("%s: line 1, column %d: the field %q stands there twice", s.file, i, f.Name)
				}
			}
			s.Declared = append(s.Declared, f)
		}
	}
	if s.Declared == nil {
		return exit.Failedf("%s: is empty: a header NAME:TYPE,... is needed", s.file)
	}
	return nil
}

// Check checks the fields of the file against those of the collection.
func (s *Fields) Check(c *db.Collection, schema db.Schema) error {
	s.types = make(map[string]db.FieldType, len(schema.Fields))
	var names []string
	for _, f := range schema.Fields {
		s.types[f.Name] = f.Type
		names = append(names, f.Name)
	}
	for i, f := range s.Declared {
		declared, ok := s.types[f.Name]
		switch {
		case !ok && len(names) == 0:
			return exit.Failedf("%s: line 1, column %d: collection %q has no fields: fddhdb alter --add-field adds them", s.file, i, c.Name())
		case !ok:
			return exit.Failedf("%s: line 1, column %d: there is no field %q: collection %q has %s; fddhdb alter --add-field adds more", s.file, i, f.Name, c.Name(), strings.Join(names, ", "))
		case declared != f.Type:
			return exit.Failedf("%s: line 1, column %d: field %q is declared as %s, not %s", s.file, i, f.Name, declared, f.Type)
		}
	}
	return nil
}

// Path implements Source, as do Rows, Close and next.
func (s *Fields) Path() string { return s.file }
func (s *Fields) Rows() int    { return len(s.lines) }
func (s *Fields) Close() error { return nil }

func (s *Fields) next(item *db.Item) error {
	if s.row == len(s.lines) {
		return io.EOF
	}
	row := s.row
	s.row++
	item.Fields = map[string]any{}
	if s.Declared == nil {
		return s.nextJSON(item, row)
	}
	for i, cell := range s.cells[row] {
		if cell == "" {
			continue // not set
		}
		v, err := ParseValue(s.Declared[i].Type, cell)
		if err != nil {
			return &RowError{fmt.Errorf("%s: line %d, column %d: field %q: %w", s.file, s.lines[row], i, s.Declared[i].Name, err)}
		}
		item.Fields[s.Declared[i].Name] = v
	}
	return nil
}

func (s *Fields) nextJSON(item *db.Item, row int) error {
	fail := func(err error) error {
		return &RowError{fmt.Errorf("%s: line %d: %w", s.file, s.lines[row], err)}
	}
	if len(s.objects[row]) == 0 {
		return fail(errors.New("is blank: write {} for an item without fields"))
	}
	d := json.NewDecoder(bytes.NewReader(s.objects[row]))
	d.UseNumber() // keeps the digits of an int64
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return fail(fmt.Errorf("is no JSON object: %w", err))
	}
	if _, err := d.Token(); err != io.EOF {
		return fail(errors.New("has something behind its object: a line is one object"))
	}
	for name, v := range object {
		typ, ok := s.types[name]
		if !ok {
			return fail(fmt.Errorf("there is no field %q", name))
		}
		if v == nil {
			continue // not set
		}
		value, err := jsonValue(typ, v)
		if err != nil {
			return fail(fmt.Errorf("field %q: %w", name, err))
		}
		item.Fields[name] = value
	}
	return nil
}

// ParseValue parses the text of a value of a field.
func ParseValue(typ db.FieldType, s string) (any, error) {
	switch typ {
	case db.String:
		return s, nil
	case db.Int:
		v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%q does not fit into an int, of 64 bits", s)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not an int", s)
		}
		return v, nil
	case db.Float:
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%q does not fit into a float, of 64 bits", s)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a float", s)
		}
		return v, nil
	case db.Bool:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", s)
	case db.Time:
		return parseTime(strings.TrimSpace(s))
	}
	return nil, fmt.Errorf("unknown type %q", typ)
}

// parseTime parses the text of a time.
func parseTime(s string) (any, error) {
	micros, err := instant.ValueOf(s)
	if err != nil {
		return nil, fmt.Errorf("%q %w", s, err)
	}
	return instant.Time(micros), nil
}

// jsonValue converts a decoded value to the type of a field.
func jsonValue(typ db.FieldType, v any) (any, error) {
	switch x := v.(type) {
	case string:
		switch typ {
		case db.String:
			return x, nil
		case db.Time:
			return parseTime(x)
		}
	case bool:
		if typ == db.Bool {
			return x, nil
		}
	case json.Number:
		if typ == db.Int || typ == db.Float {
			return ParseValue(typ, x.String())
		}
		if typ == db.Time {
			return nil, fmt.Errorf("%v is a number, and a time is text, as 2024-05-01T12:30:00Z", v)
		}
	}
	return nil, fmt.Errorf("%v is not of type %s", v, typ)
}
