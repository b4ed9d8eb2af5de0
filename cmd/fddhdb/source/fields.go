package source

import (
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/rows"
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

// Path implements rows.Source, as do Rows, Close and Next.
func (s *Fields) Path() string { return s.file }
func (s *Fields) Rows() int    { return s.t.Rows() }
func (s *Fields) Close() error { return s.t.Close() }

func (s *Fields) Next(item *db.Item) error {
	if err := s.t.Next(&s.row); err != nil {
		return rows.Of(err)
	}
	item.Fields = map[string]any{}
	for name, v := range s.row.Fields {
		value, err := rows.Value(s.types[name], v)
		if err != nil {
			return &rows.Error{Err: s.t.Fail(fmt.Errorf("field %q: %w", name, err))}
		}
		item.Fields[name] = value
	}
	return nil
}
