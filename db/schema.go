package db

import (
	"encoding/json"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A Schema says what the items of a collection may hold. With modalities the
// collection is learned: items bring features and training makes the codes.
// With Bits instead, items bring their codes.
type Schema struct {
	Modalities []Modality `json:"modalities,omitempty"`
	Bits       int        `json:"bits,omitempty"` // codes-only: a multiple of 8 from 8 to 4096; else 0
	Fields     []Field    `json:"fields,omitempty"`

	// IndexOnly says, in schemas that the database returns, that the collection is a copy
	// without the vectors of its items, see CheckpointOptions.IndexOnly. None is created so.
	IndexOnly bool `json:"index_only,omitempty"`
}

// A Modality is one kind of features: float32 vectors of Dim dimensions. Those of a
// Sparse one, such as bags of words, are stored and computed with as the numbers that
// are not 0; the codes are those of a dense one.
type Modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"`
}

// A Field is a typed attribute of items. Indexed fields are those that filters can
// use, see Query.Where.
type Field struct {
	Name    string    `json:"name"`
	Type    FieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"`
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
)

func (s *Schema) check() error {
	switch {
	case s.Bits != 0 && s.IndexOnly:
		return fault.Invalid("an index-only collection has modalities, not codes of its own")
	case s.Bits != 0 && len(s.Modalities) > 0:
		return fault.Invalid("a collection has modalities or brings codes of its own, not both")
	case s.Bits == 0 && len(s.Modalities) == 0:
		return fault.Invalid("a collection needs a modality, or the number of bits of the codes that its items bring")
	case len(s.Modalities) > MaxModalities:
		return fault.Invalid("%d modalities, at most %d are possible", len(s.Modalities), MaxModalities)
	case len(s.Fields) > MaxFields:
		return fault.Invalid("%d fields, at most %d are possible", len(s.Fields), MaxFields)
	}
	if s.Bits != 0 {
		if err := codec.CheckBits(s.Bits); err != nil {
			return fault.Invalid("%w", err)
		}
	}
	seen := map[string]string{}
	once := func(what, name string) error {
		if err := checkName(what, name); err != nil {
			return err
		}
		if other, ok := seen[name]; ok {
			return fault.Invalid("%s %q: there is a %s of that name already", what, name, other)
		}
		seen[name] = what
		return nil
	}
	for _, m := range s.Modalities {
		if err := once("modality", m.Name); err != nil {
			return err
		}
		if m.Dim < 1 || m.Dim > MaxDim {
			return fault.Invalid("modality %q: %d dimensions, possible are 1 to %d", m.Name, m.Dim, MaxDim)
		}
	}
	for _, f := range s.Fields {
		if err := once("field", f.Name); err != nil {
			return err
		}
		switch f.Type {
		case String, Int, Float, Bool:
		default:
			return fault.Invalid("field %q: unknown type %q: string, int, float and bool are possible", f.Name, shortened(string(f.Type)))
		}
	}
	return nil
}

// checkName admits letters, digits, '_', '-' and '.', so that names can stand
// unquoted in expressions and in flags such as NAME=FILE.
func checkName(what, name string) error {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return fault.Invalid("%s name %q: 1 to %d bytes of UTF-8 are possible", what, shortened(name), MaxNameBytes)
	}
	for i, r := range name {
		if unicode.IsLetter(r) || r == '_' || (i > 0 && (unicode.IsDigit(r) || r == '-' || r == '.')) {
			continue
		}
		return fault.Invalid("%s name %q: letters, digits, '_', '-' and '.' are possible, a letter or '_' first", what, name)
	}
	return nil
}

// A descriptor is what is stored of a collection. Modalities and fields are
// known by their position, which never changes.
type descriptor struct {
	Version    int        `json:"version"`
	ID         uint32     `json:"id"`
	Name       string     `json:"name"`
	Bits       int        `json:"bits,omitempty"`
	Modalities []Modality `json:"modalities,omitempty"`
	Fields     []Field    `json:"fields,omitempty"`
	IndexOnly  bool       `json:"index_only,omitempty"` // version 1, which nothing else has
}

func (d *descriptor) codesOnly() bool { return d.Bits != 0 }

func (d *descriptor) schema() Schema {
	return Schema{Bits: d.Bits, Modalities: slices.Clone(d.Modalities), Fields: slices.Clone(d.Fields), IndexOnly: d.IndexOnly}
}

// modality returns the position of a modality.
func (d *descriptor) modality(name string) (int, error) {
	for i, m := range d.Modalities {
		if m.Name == name {
			return i, nil
		}
	}
	if d.codesOnly() {
		return 0, fault.Invalid("modality %q: the items of collection %q bring codes, they have no modalities", shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown modality %q: collection %q has %s", shortened(name), d.Name, names(d.Modalities))
}

func (d *descriptor) field(name string) (int, error) {
	for i, f := range d.Fields {
		if f.Name == name {
			return i, nil
		}
	}
	if len(d.Fields) == 0 {
		return 0, fault.Invalid("unknown field %q: collection %q has no fields", shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown field %q: collection %q has %s", shortened(name), d.Name, names(d.Fields))
}

func names[T Modality | Field](list []T) string {
	s := ""
	for i, x := range list {
		if i > 0 {
			s += ", "
		}
		switch x := any(x).(type) {
		case Modality:
			s += x.Name
		case Field:
			s += x.Name
		}
	}
	return s
}

func (d *descriptor) encode() ([]byte, error) { return json.Marshal(d) }

func decodeDescriptor(b []byte) (*descriptor, error) {
	d := new(descriptor)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, err
	}
	if err := d.checkVersion(); err != nil {
		return nil, err
	}
	s := d.schema()
	if err := s.check(); err != nil {
		return nil, err
	}
	return d, checkName("collection", d.Name)
}
