package record

import (
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// A Descriptor is what is stored of a collection. Modalities and fields are
// known by their position, which never changes.
type Descriptor struct {
	Version    int        `json:"version"`
	ID         uint32     `json:"id"`
	Name       string     `json:"name"`
	Bits       int        `json:"bits,omitempty"`
	Modalities []Modality `json:"modalities,omitempty"`
	Fields     []Field    `json:"fields,omitempty"`
	IndexOnly  bool       `json:"index_only,omitempty"` // version 1, which nothing else has
}

func (d *Descriptor) CodesOnly() bool { return d.Bits != 0 }

// ModalityOf returns the position of a modality.
func (d *Descriptor) ModalityOf(name string) (int, error) {
	for i, m := range d.Modalities {
		if m.Name == name {
			return i, nil
		}
	}
	if d.CodesOnly() {
		return 0, fault.Invalid("modality %q: the items of collection %q bring codes, they have no modalities", Shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown modality %q: collection %q has %s", Shortened(name), d.Name, Names(d.Modalities))
}

func (d *Descriptor) FieldOf(name string) (int, error) {
	for i, f := range d.Fields {
		if f.Name == name {
			return i, nil
		}
	}
	if len(d.Fields) == 0 {
		return 0, fault.Invalid("unknown field %q: collection %q has no fields", Shortened(name), d.Name)
	}
	return 0, fault.Invalid("unknown field %q: collection %q has %s", Shortened(name), d.Name, Names(d.Fields))
}

func Names[T Modality | Field](list []T) string {
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

func (d *Descriptor) Encode() ([]byte, error) { return json.Marshal(d) }

// Check checks that a collection can be so: all but its name and version.
func (d *Descriptor) Check() error {
	switch {
	case d.Bits != 0 && d.IndexOnly:
		return fault.Invalid("an index-only collection has modalities, not codes of its own")
	case d.Bits != 0 && len(d.Modalities) > 0:
		return fault.Invalid("a collection has modalities or brings codes of its own, not both")
	case d.Bits == 0 && len(d.Modalities) == 0:
		return fault.Invalid("a collection needs a modality, or the number of bits of the codes that its items bring")
	case len(d.Modalities) > MaxModalities:
		return fault.Invalid("%d modalities, at most %d are possible", len(d.Modalities), MaxModalities)
	case len(d.Fields) > MaxFields:
		return fault.Invalid("%d fields, at most %d are possible", len(d.Fields), MaxFields)
	}
	if d.Bits != 0 {
		if err := codec.CheckBits(d.Bits); err != nil {
			return fault.Invalid("%w", err)
		}
	}
	seen := map[string]string{}
	once := func(what, name string) error {
		if err := CheckName(what, name); err != nil {
			return err
		}
		if other, ok := seen[name]; ok {
			return fault.Invalid("%s %q: there is a %s of that name already", what, name, other)
		}
		seen[name] = what
		return nil
	}
	for _, m := range d.Modalities {
		if err := once("modality", m.Name); err != nil {
			return err
		}
		if m.Dim < 1 || m.Dim > MaxDim {
			return fault.Invalid("modality %q: %d dimensions, possible are 1 to %d", m.Name, m.Dim, MaxDim)
		}
	}
	for _, f := range d.Fields {
		if err := once("field", f.Name); err != nil {
			return err
		}
		switch f.Type {
		case String, Int, Float, Bool:
		default:
			return fault.Invalid("field %q: unknown type %q: string, int, float and bool are possible", f.Name, Shortened(string(f.Type)))
		}
	}
	return nil
}

// CheckName admits letters, digits, '_', '-' and '.', so that names can stand
// unquoted in expressions and in flags such as NAME=FILE.
func CheckName(what, name string) error {
	if name == "" || len(name) > MaxNameBytes || !utf8.ValidString(name) {
		return fault.Invalid("%s name %q: 1 to %d bytes of UTF-8 are possible", what, Shortened(name), MaxNameBytes)
	}
	for i, r := range name {
		if unicode.IsLetter(r) || r == '_' || (i > 0 && (unicode.IsDigit(r) || r == '-' || r == '.')) {
			continue
		}
		return fault.Invalid("%s name %q: letters, digits, '_', '-' and '.' are possible, a letter or '_' first", what, name)
	}
	return nil
}

func DecodeDescriptor(b []byte) (*Descriptor, error) {
	d := new(Descriptor)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, err
	}
	if err := d.checkVersion(); err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	return d, CheckName("collection", d.Name)
}

// An index-only collection is a copy of a learned one that has all that answers searches,
// filters and Get, and none of the vectors of its items, nor what only learning needs:
// statistics, what rows have taught, what is pending. Nothing can be written to it, as a
// write would need the features; its spaces can be activated and dropped. Its descriptor has
// a version of its own, so that what knows nothing of such collections does not open them.

// VersionIndexOnly is the version of the descriptor of an index-only collection, that of
// all others being 0.
const VersionIndexOnly = 1

// checkVersion checks that the version of a descriptor is known, and that of what it
// describes.
func (d *Descriptor) checkVersion() error {
	switch {
	case d.Version > VersionIndexOnly:
		return &codec.VersionError{What: "descriptor", Found: d.Version, Newest: VersionIndexOnly}
	case d.Version < DescriptorVersion:
		return fmt.Errorf("version %d", d.Version)
	case d.IndexOnly != (d.Version == VersionIndexOnly):
		return fmt.Errorf("version %d, index-only: %v", d.Version, d.IndexOnly)
	}
	return nil
}

// WithoutVectors returns the descriptor of an index-only copy. Collections of given codes have
// nothing that could be left out.
func (d *Descriptor) WithoutVectors() *Descriptor {
	if d.CodesOnly() {
		return d
	}
	only := *d
	only.Version, only.IndexOnly = VersionIndexOnly, true
	return &only
}

// Changeable refuses changes of items, and of what is learned from them.
func (d *Descriptor) Changeable() error {
	if !d.IndexOnly {
		return nil
	}
	return fmt.Errorf("%w: collection %q is index-only, a copy without the vectors that this takes: write to the database that it is a copy of, or restore a full backup",
		fault.ErrReadOnly, d.Name)
}

// LacksVectors is about vectors of items of an index-only collection that are asked for.
func (d *Descriptor) LacksVectors(what string) error {
	return fault.Invalid("collection %q is index-only: its items have no vectors %s", d.Name, what)
}

// Match finds the modalities of a model among those of a collection.
func (d *Descriptor) Match(m *model.Model) ([]int, error) {
	var positions []int
	for _, mod := range m.Modalities() {
		t, err := d.ModalityOf(mod.Name)
		if err != nil {
			return nil, fmt.Errorf("the model has a modality %q", mod.Name)
		}
		if d.Modalities[t].Dim != mod.Dim {
			return nil, fmt.Errorf("modality %q of the model has %d dimensions", mod.Name, mod.Dim)
		}
		if d.Modalities[t].Sparse != mod.Sparse {
			return nil, fmt.Errorf("modality %q of the model is sparse: %v", mod.Name, mod.Sparse)
		}
		positions = append(positions, t)
	}
	return positions, nil
}
