package source

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// Items is a file of whole items.
type Items struct {
	file    string
	lines   bool // row i is line i+1
	r       table.Items
	say     Mapping
	lenient bool // ignore values that the collection has no place for

	// Set by assign, if the file is a table.
	columns  []MappedColumn
	note     string
	otherKey string // advice where the key was guessed
	keyless  bool   // no column is the key

	// Set by Check.
	dims   map[string]int
	types  map[string]db.FieldType
	bits   int
	has    string         // what the collection has, in words, for errors
	keys   keySet         // keys so far
	n      int            // number of rows read
	row    table.Item     // the row in hand
	fields map[string]any // memory of its fields
}

// OpenItems opens a file of whole items. The mapping is about the columns of a table. A value that the
// collection has no place for is ignored if lenient, else it is an error.
func OpenItems(in Input, say Mapping, lenient bool) (*Items, error) {
	r, err := openItemFile(in)
	if err != nil {
		return nil, err
	}
	if _, ok := r.(*table.Table); !ok && !say.empty() {
		_ = r.Close() // nothing was written
		return nil, exit.Usagef("%s has items as export writes them, each member with its meaning: --key-column, --label-column, --label-separator, --vector-column and --field-column are about columns", in.Name)
	}
	lines := strings.EqualFold(filepath.Ext(in.Path), ".jsonl")
	return &Items{file: in.Name, lines: lines, r: r, say: say, lenient: lenient, fields: map[string]any{}}, nil
}

// openItemFile opens a file of items by its extension.
func openItemFile(in Input) (table.Items, error) {
	switch ext := strings.ToLower(filepath.Ext(in.Path)); ext {
	case ".jsonl", ".csv":
		return files.OpenItems(in.Path, in.Name)
	case ".parquet":
		return parquet.OpenItems(in.Path)
	default:
		return nil, exit.Usagef("--items %s: .jsonl, .csv and .parquet files are read, not %s", in.Name, term.FileKind(in.Path))
	}
}

// assign finds out what the columns of a table become, for a collection that is there, or without a schema
// for one that is made of them.
func (s *Items) assign(schema *db.Schema) error {
	t, ok := s.r.(*table.Table)
	if !ok || s.columns != nil {
		return nil
	}
	columns, err := t.Columns()
	if err != nil {
		return err
	}
	m, err := newMapper(s.file, columns, &s.say, schema)
	if err != nil {
		return err
	}
	if schema != nil {
		if err := s.checkColumns(m); err != nil {
			return err
		}
	}
	if err := t.Map(m.uses); err != nil {
		return err
	}
	s.note = m.note()
	s.keyless = m.keyless
	if m.keyGuessed {
		s.otherKey = ": --key-column names another column of keys"
	}
	s.columns = make([]MappedColumn, len(columns))
	for i, c := range columns {
		s.columns[i] = MappedColumn{c.Name, c.Describe(), becomes(m.uses[i]), c.Example}
	}
	return nil
}

// A MappedColumn says what a column of a table becomes.
type MappedColumn struct {
	Column  string `json:"column"`
	Type    string `json:"type"`
	Becomes string `json:"becomes"`
	Example string `json:"example"`
}

// becomes returns a use in words.
func becomes(u table.Use) string {
	switch u.Role {
	case table.AsKey:
		return "key"
	case table.AsLabels:
		if u.Separator != "" {
			return fmt.Sprintf("labels, between %q", u.Separator)
		}
		return "labels"
	case table.AsLabel:
		return "label " + u.Name
	case table.AsPayload:
		return "payload"
	case table.AsCode:
		return "code"
	case table.AsVector:
		return "vector " + u.Name
	case table.AsField:
		return "field " + u.Name
	}
	return ""
}

// Mapping returns what the columns of a table become, nil if the file is none.
func (s *Items) Mapping() []MappedColumn { return s.columns }

// Note returns in one line what has been guessed about the columns and could be wrong, "" if nothing has.
func (s *Items) Note() string { return s.note }

// Path implements Source, as do Rows, Close and next.
func (s *Items) Path() string { return s.file }
func (s *Items) Rows() int    { return s.r.Rows() }
func (s *Items) Close() error { return s.r.Close() }

// Schema returns the schema of a collection for the items.
func (s *Items) Schema() (db.Schema, error) {
	var out db.Schema
	if err := s.assign(nil); err != nil {
		return out, err
	}
	shape, err := s.r.Shape()
	if err != nil {
		return out, err
	}
	for _, v := range shape.Vectors {
		out.Modalities = append(out.Modalities, db.Modality{Name: v.Name, Dim: v.Dim, Sparse: v.Sparse})
	}
	for _, f := range shape.Fields {
		out.Fields = append(out.Fields, db.Field{Name: f.Name, Type: db.FieldType(f.Type)})
	}
	if len(out.Modalities) == 0 {
		out.Bits = 8 * shape.Code
	}
	if len(out.Modalities) == 0 && out.Bits == 0 {
		if err := s.firstBad(); err != nil {
			return out, exit.Failedf("%w; and the other items do not say what collection to create", err)
		}
		return out, exit.Failedf("%s: no item has vectors, and not all have codes, so that it does not say what collection to create: init first", s.file)
	}
	return out, nil
}

// firstBad returns the error of the first row that is no item, nil if there is none. It reads the file.
func (s *Items) firstBad() error {
	for {
		switch err := s.r.Next(&s.row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// Check takes the schema of the collection, against which each item is checked. merge says that they are
// merged with items that are there.
func (s *Items) Check(c *db.Collection, schema db.Schema, merge bool) error {
	s.dims = make(map[string]int, len(schema.Modalities))
	for _, m := range schema.Modalities {
		s.dims[m.Name] = m.Dim
	}
	s.types = make(map[string]db.FieldType, len(schema.Fields))
	for _, f := range schema.Fields {
		s.types[f.Name] = f.Type
	}
	s.bits = schema.Bits
	s.has = fmt.Sprintf("collection %q has %s", c.Name(), textform.DescribeSchema(schema))
	if err := s.assign(&schema); err != nil {
		return err
	}
	if merge && s.keyless {
		return exit.Usagef("--merge: %s has no column of keys, which say what items to merge with: --key-column NAME names it", s.file)
	}
	return nil
}

// checkColumns checks the columns of a table against the collection before any row is read.
func (s *Items) checkColumns(m *mapper) error {
	for i := range m.uses {
		u, kind, known := &m.uses[i], "", true
		switch u.Role {
		case table.AsVector:
			kind = "modality"
			_, known = s.dims[u.Name]
		case table.AsField:
			kind = "field"
			_, known = s.types[u.Name]
		case table.AsCode:
			known = s.bits > 0
		}
		if !known && !s.lenient && kind != "" {
			return exit.Failedf("%s: %w", s.file, s.unknown(kind, u.Name))
		}
		if !known {
			*u = table.Use{}
		}
	}
	return nil
}

func (s *Items) next(item *db.Item) error {
	err := s.r.Next(&s.row)
	s.n++
	if err == nil {
		if err = s.take(item); err == nil {
			return nil
		}
		err = s.r.Fail(err)
	}
	return ofRow(err)
}

// take converts the row in hand to an item of the collection.
func (s *Items) take(item *db.Item) error {
	item.Key, item.Labels, item.Payload = s.row.Key, s.row.Labels, s.row.Payload
	if first := s.keys.add(item.Key, s.n-1); first >= 0 {
		return fmt.Errorf("the key %q is that of %s, too%s", item.Key, s.place(first), s.otherKey)
	}
	for name, x := range s.row.Vectors {
		dim, ok := s.dims[name]
		switch {
		case ok && len(x) != dim:
			return fmt.Errorf("vectors: %q has %s, the modality has %d", name, term.Plural(len(x), "number", "numbers"), dim)
		case ok:
			item.Vectors[name] = x
		case !s.lenient:
			return s.unknown("modality", name)
		}
	}
	for name, x := range s.row.Sparse {
		dim, ok := s.dims[name]
		switch n := len(x.Index); {
		case ok && n > 0 && int(x.Index[n-1]) >= dim:
			return fmt.Errorf("vectors: %q has a number in column %d, the modality has %s", name, x.Index[n-1], term.Plural(dim, "dimension", "dimensions"))
		case ok:
			item.Sparse[name] = db.Sparse{Index: x.Index, Value: x.Value}
		case !s.lenient:
			return s.unknown("modality", name)
		}
	}
	item.Code = nil
	if s.bits > 0 {
		if item.Code = s.row.Code; item.Code != nil && 8*len(item.Code) != s.bits {
			return fmt.Errorf("code: has %d bits, the collection has codes of %d", 8*len(item.Code), s.bits)
		}
	}
	clear(s.fields)
	item.Fields = s.fields
	for name, v := range s.row.Fields {
		typ, ok := s.types[name]
		if !ok {
			if s.lenient {
				continue
			}
			return s.unknown("field", name)
		}
		value, err := fieldValue(typ, v)
		if err != nil {
			return fmt.Errorf("fields: %q: %w", name, err)
		}
		s.fields[name] = value
	}
	return nil
}

// place returns the name of a row for errors about the file.
func (s *Items) place(row int) string {
	if s.lines {
		return fmt.Sprintf("line %d", row+1)
	}
	return fmt.Sprintf("row %d", row)
}

// unknown returns the error for a name that the collection does not have.
func (s *Items) unknown(kind, name string) error {
	other := ""
	if _, ok := s.r.(*table.Table); ok {
		other = map[string]string{"modality": ", --vector-column MODALITY=COLUMN", "field": ", --field-column FIELD=COLUMN"}[kind] + " names another one"
	}
	return fmt.Errorf("there is no %s %q: %s; --ignore-unknown leaves aside what it has not%s", kind, name, s.has, other)
}

// fieldValue converts a value of a file to the type of a field.
func fieldValue(typ db.FieldType, v any) (any, error) {
	switch x := v.(type) {
	case json.Number, string, bool:
		return jsonValue(typ, v)
	case int64:
		switch typ {
		case db.Int:
			return x, nil
		case db.Float:
			return float64(x), nil
		}
	case float64:
		if typ == db.Float {
			return x, nil
		}
	case time.Time:
		switch typ {
		case db.Time:
			return x, nil
		case db.String:
			return term.Value(x), nil
		}
	}
	return nil, fmt.Errorf("%v is not of type %s", v, typ)
}
