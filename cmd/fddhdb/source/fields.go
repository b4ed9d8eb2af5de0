package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// Fields is a file of fields: a CSV whose header declares them, or JSON, an object a line. Values are parsed
// when their row comes, so that a bad value costs only its row.
type Fields struct {
	file     string
	Declared []db.Field // fields of the header; nil for JSON
	t        *table.Table
	names    []string // of the fields, by column
	types    map[string]db.FieldType
	row      table.Item
}

// OpenFields reads a .csv or .jsonl file of fields.
func OpenFields(file string) (*Fields, error) {
	if files.Extension(file) == ".parquet" {
		return nil, exit.Usagef("--fields %s: fields are read from .csv or .jsonl; --items takes them from a .parquet, and --merge adds them to items that are there", file)
	}
	t, err := files.OpenTable(file, file)
	if err != nil {
		return nil, err
	}
	s := &Fields{file: file, t: t}
	if err := s.declare(); err != nil {
		_ = t.Close() // nothing was written
		return nil, err
	}
	return s, nil
}

// declare takes the names of the columns, of a .csv with their types.
func (s *Fields) declare() error {
	columns, err := s.t.Columns()
	if err != nil {
		return err
	}
	for i, c := range columns {
		if s.names = append(s.names, c.Name); !c.Text {
			continue
		}
		f, err := forms.ParseField(c.Name)
		if err != nil {
			return exit.Failedf("%s: line 1, column %d: %q: %w: the header says NAME:TYPE", s.file, i, c.Name,
				err)
		}
		for _, other := range s.Declared {
			if other.Name == f.Name {
				return exit.Failedf("%s: line 1, column %d: the field %q stands there twice", s.file, i,
					f.Name)
			}
		}
		s.Declared, s.names[i] = append(s.Declared, f), f.Name
	}
	return nil
}

// Check checks the fields of the file against those of the collection.
func (s *Fields) Check(c api.Collection, schema db.Schema) error {
	s.types = make(map[string]db.FieldType, len(schema.Fields))
	var names []string
	for _, f := range schema.Fields {
		s.types[f.Name] = f.Type
		names = append(names, f.Name)
	}
	uses := make([]table.Use, len(s.names))
	line := "" // that has the names
	if s.Declared != nil {
		line = "line 1, "
	}
	for i, name := range s.names {
		typ, ok := s.types[name]
		switch {
		case !ok && len(names) == 0:
			return exit.Failedf("%s: %scolumn %d: collection %q has no fields: fddhdb alter --add-field adds them", s.file, line, i, c.Name())
		case !ok:
			return exit.Failedf("%s: %scolumn %d: there is no field %q: collection %q has %s; fddhdb alter --add-field adds more", s.file, line, i, name, c.Name(), strings.Join(names, ", "))
		case s.Declared != nil && typ != s.Declared[i].Type:
			return exit.Failedf("%s: %scolumn %d: field %q is declared as %s, not %s", s.file, line, i, name,
				typ, s.Declared[i].Type)
		}
		uses[i] = table.Use{Role: table.AsField, Name: name, Type: string(typ)}
	}
	return s.t.Map(uses)
}

// Path implements Source, as do Rows, Close and next.
func (s *Fields) Path() string { return s.file }
func (s *Fields) Rows() int    { return s.t.Rows() }
func (s *Fields) Close() error { return s.t.Close() }

func (s *Fields) next(item *db.Item) error {
	if err := s.t.Next(&s.row); err != nil {
		return ofRow(err)
	}
	item.Fields = map[string]any{}
	for name, v := range s.row.Fields {
		value, err := fieldValue(s.types[name], v)
		if err != nil {
			return &RowError{s.t.Fail(fmt.Errorf("field %q: %w", name, err))}
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
