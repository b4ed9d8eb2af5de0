package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// A File is an open file of items. Schema says what collection they need. Check says which collection they
// are for; from then on Next returns items of its schema. One goroutine may use it at a time.
type File struct {
	name  string
	r     table.Items
	o     Options
	words *Words

	// Set by assign, if the file is a table.
	columns  []Column
	note     string
	otherKey string // advice where the key was guessed
	keyless  bool   // no column is the key
	noVector error  // why no column is a vector

	// Set by Check.
	collection string
	schema     *db.Schema
	dims       map[string]int
	types      map[string]db.FieldType
	keys       rows.KeySet    // so far
	n          int            // number of rows read
	row        table.Item     // the row in hand
	fields     map[string]any // memory of its fields
}

// A RowError is the error of a row that cannot be read, or that the collection cannot store. It wraps the
// *files.Error that says where the row is, if there is one.
type RowError = rows.Error

// A NoVectorsError says that the items of a file have neither vectors nor codes. A new collection needs them.
type NoVectorsError struct{ Err error }

func (e *NoVectorsError) Error() string { return e.Err.Error() }
func (e *NoVectorsError) Unwrap() error { return e.Err }

// Open opens a file of items: a .jsonl or .parquet that fddhdb has exported; a .parquet, .csv, .jsonl or
// .json of another program; or a .npy or .npz of vectors alone. Any of them may be compressed, see package
// files. Errors call it name. The caller closes it.
func Open(path, name string, o Options) (*File, error) {
	file, _ := files.Cut(path)
	switch ext := files.Extension(file); {
	case files.IsArrow(file):
		return nil, fault.Invalid("%s%s: %s", o.words().File, name, files.ArrowAdvice)
	case !slices.Contains([]string{".jsonl", ".csv", ".parquet", ".npy", ".npz"}, ext):
		return nil, fault.Invalid("%s%s: .jsonl, .json, .csv, .parquet, .npy and .npz files are read, not %s",
			o.words().File, name, cmp.Or(ext, "one without an extension"))
	}
	r, err := files.OpenItems(path, name)
	if err != nil {
		return nil, err
	}
	if _, ok := r.(*table.Table); !ok && !o.Mapping.empty() {
		_ = r.Close() // nothing was written
		w := o.words()
		return nil, fault.Invalid("%s has items as export writes them, each member with its meaning: %s, %s, %s, %s and %s are about columns",
			name, w.Key, w.Labels, w.Separator, w.Vectors, w.Fields)
	}
	return New(r, name, o), nil
}

// New returns the File of items that are open.
func New(r table.Items, name string, o Options) *File {
	return &File{name: name, r: r, o: o, words: o.words(), keys: rows.KeySet{Policy: o.OnDuplicate},
		fields: map[string]any{}}
}

// assign finds out what the columns of a table become, for a collection that is there, or without a schema
// for one that is made of them.
func (s *File) assign(schema *db.Schema) error {
	t, ok := s.r.(*table.Table)
	if !ok || s.columns != nil {
		return nil
	}
	columns, err := t.Columns()
	if err != nil {
		return err
	}
	m := newMapper(s.name, columns, &s.o, schema)
	if err := m.settle(); err != nil {
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
	s.keyless, s.noVector = m.keyless, m.noVector()
	if m.keyGuessed {
		s.otherKey = ": " + s.words.Key + " names another column of keys"
	}
	s.columns = []Column{}
	for i, c := range columns {
		of := Column{c.Name, c.Describe(), becomes(m.uses[i]), c.Example}
		if u := m.uses[i]; u.Role == table.AsElement {
			if u.At > 0 {
				continue
			}
			all := m.elements(u.Name)
			last := columns[all[len(all)-1]].Name
			of.Column, of.Type = c.Name+" to "+last, fmt.Sprintf("%d columns of numbers", len(all))
		}
		s.columns = append(s.columns, of)
	}
	return nil
}

// A Column says what a column of a file becomes. Columns of numbers that are one vector are one Column.
type Column struct {
	Column  string `json:"column"`
	Type    string `json:"type"`    // what it holds, in words
	Becomes string `json:"becomes"` // as key, labels, vector image or field year; "" if it is left aside
	Example string `json:"example"` // the first value, cut to a few characters
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
	case table.AsVector, table.AsElement:
		return "vector " + u.Name
	case table.AsField:
		return "field " + u.Name
	}
	return ""
}

// Columns says what the columns become, after Schema or Check. It is nil for items that fddhdb has exported.
func (s *File) Columns() []Column { return s.columns }

// Note returns in one line what has been guessed about the columns and could be wrong, after Schema or Check;
// "" if nothing has.
func (s *File) Note() string { return s.note }

// Path returns the name of the file.
func (s *File) Path() string { return s.name }

// Rows returns the number of rows, -1 if it is not known before Schema or Check.
func (s *File) Rows() int { return s.r.Rows() }

// Close closes the file.
func (s *File) Close() error { return s.r.Close() }

// Schema returns the schema of a collection for the items. If these have neither vectors nor codes it returns
// the fields, and a *NoVectorsError.
func (s *File) Schema() (db.Schema, error) {
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
		if s.noVector != nil {
			return out, s.noVector
		}
		if err := s.firstBad(); err != nil {
			return out, fmt.Errorf("%w; and the other items do not say what collection to create", err)
		}
		return out, &NoVectorsError{failed(s.name, "no item has a vector in \"vectors\", and not all have a \"code\": a collection is made of items with either")}
	}
	return out, nil
}

// failed returns an error about what a file has.
func failed(file, format string, args ...any) error {
	return &files.Error{File: file, Row: -1, Col: -1, Err: fmt.Errorf(format, args...)}
}

// firstBad returns the error of the first row that is no item, nil if there is none. It reads the file.
func (s *File) firstBad() error {
	for {
		switch err := s.r.Next(&s.row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// Check says that the items are for a collection, by its name and schema. Call it once, before Next. After
// Schema the columns stay what they are in a new collection. Errors:
// db.ErrInvalid for options that do not suit the file, *files.Error for a column that the collection has no
// place for.
func (s *File) Check(collection string, schema db.Schema) error {
	s.dims = make(map[string]int, len(schema.Modalities))
	for _, m := range schema.Modalities {
		s.dims[m.Name] = m.Dim
	}
	s.types = make(map[string]db.FieldType, len(schema.Fields))
	for _, f := range schema.Fields {
		s.types[f.Name] = f.Type
	}
	s.collection, s.schema = collection, &schema
	if err := s.assign(&schema); err != nil {
		return err
	}
	if s.o.Merge && s.keyless {
		return fault.Invalid("%s: %s has no column of keys, which say what items to merge with: %s names it",
			s.words.Merge, s.name, s.words.Key)
	}
	return nil
}

// checkColumns checks the columns of a table against the collection before any row is read.
func (s *File) checkColumns(m *mapper) error {
	for i := range m.uses {
		u, kind, known := &m.uses[i], "", true
		switch u.Role {
		case table.AsVector, table.AsElement:
			kind = "modality"
			_, known = s.dims[u.Name]
		case table.AsField:
			kind = "field"
			_, known = s.types[u.Name]
		case table.AsCode:
			known = s.schema.Bits > 0
		}
		if !known && !s.o.IgnoreUnknown && kind != "" {
			return failed(s.name, "%w", s.unknown(kind, u.Name))
		}
		if !known {
			*u = table.Use{}
		}
	}
	return nil
}

// Next reads the next row into the item, whose maps Vectors and Sparse are empty and not nil. What the item
// gets is valid until the next call. Next returns io.EOF after the last row. A *RowError costs only that row,
// and the next call goes on.
func (s *File) Next(item *db.Item) error {
	err := s.r.Next(&s.row)
	s.n++
	if err == nil {
		if err = s.take(item); err != nil {
			if s.keys.LeaveOut(item.Key); item.Key != "" {
				err = fmt.Errorf("key %q: %w", item.Key, err)
			}
			err = s.r.Fail(err)
		} else if err = s.addKey(item.Key); err == rows.ErrDuplicate {
			return err
		} else if err != nil {
			err = s.r.Fail(err)
		}
	}
	return rows.Of(err)
}

// addKey refuses a key that an earlier row has.
func (s *File) addKey(key string) error {
	place, kind := s.n-1, "row"
	if line := s.r.Line(); line > 0 {
		place, kind = line, "line"
	}
	first, err := s.keys.Add(key, place)
	if first >= 0 {
		return fmt.Errorf("the key %q is that of %s %d, too%s (%s takes one of them)", key, kind, first, s.otherKey,
			s.words.OnDuplicate)
	}
	return err
}

// Repeats reports whether an earlier row has the key of the row that Next read last.
func (s *File) Repeats() bool { return s.keys.Repeats() }

// take converts the row in hand to an item of the collection.
func (s *File) take(item *db.Item) error {
	item.Key, item.Labels, item.Payload = s.row.Key, s.row.Labels, s.row.Payload
	for name, x := range s.row.Vectors {
		dim, ok := s.dims[name]
		switch {
		case ok && len(x) != dim:
			return fmt.Errorf("vectors: %q has %s, the modality has %d", name,
				count(len(x), "number"), dim)
		case ok:
			item.Vectors[name] = x
		case !s.o.IgnoreUnknown:
			return s.unknown("modality", name)
		}
	}
	for name, x := range s.row.Sparse {
		dim, ok := s.dims[name]
		switch n := len(x.Index); {
		case ok && n > 0 && int(x.Index[n-1]) >= dim:
			return fmt.Errorf("vectors: %q has a number in column %d, the modality has %s", name,
				x.Index[n-1], count(dim, "dimension"))
		case ok:
			item.Sparse[name] = db.Sparse{Index: x.Index, Value: x.Value}
		case !s.o.IgnoreUnknown:
			return s.unknown("modality", name)
		}
	}
	item.Code = nil
	if bits := s.schema.Bits; bits > 0 {
		if item.Code = s.row.Code; item.Code != nil && 8*len(item.Code) != bits {
			return fmt.Errorf("code: has %d bits, the collection has codes of %d", 8*len(item.Code), bits)
		}
	}
	clear(s.fields)
	item.Fields = s.fields
	for name, v := range s.row.Fields {
		typ, ok := s.types[name]
		if !ok {
			if s.o.IgnoreUnknown {
				continue
			}
			return s.unknown("field", name)
		}
		value, err := rows.Value(typ, v)
		if err != nil {
			return fmt.Errorf("fields: %q: %w", name, err)
		}
		s.fields[name] = value
	}
	return nil
}

// unknown returns the error for a name that the collection does not have.
func (s *File) unknown(kind, name string) error {
	plural, other := "modalities", s.words.NameVector
	var names []string
	for _, m := range s.schema.Modalities {
		names = append(names, m.Name)
	}
	if kind == "field" {
		plural, other, names = "fields", s.words.NameField, nil
		for _, f := range s.schema.Fields {
			names = append(names, f.Name)
		}
	}
	if _, ok := s.r.(*table.Table); ok {
		other = ", " + other + " names another one"
	} else {
		other = ""
	}
	return fmt.Errorf("there is no %s %q: collection %q has %s; %s leaves aside what it has not%s", kind, name,
		s.collection, cmp.Or(listStart(names), "no "+plural), s.words.IgnoreUnknown, other)
}

// count returns a count with the right form of its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
