package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// A Descriptor is the schema of a collection as it is stored, in JSON: under
// codec.KindCollection, and as a copy in the descriptor of each space (spaces.Reported), for a
// repair that finds the first one lost. Records name modalities and fields by their position
// here, so positions never change: both lists only grow. Once a collection has a descriptor
// nothing writes to it: an alteration makes another one, and views keep theirs.
type Descriptor struct {
	ID         uint32     `json:"id"`                   // in the keys of all records of the collection; never used again
	Name       string     `json:"name"`                 // unique in the database, see CheckName; never changes
	Bits       int        `json:"bits,omitempty"`       // of the codes that items bring; 0: codes are learned from vectors
	Modalities []Modality `json:"modalities,omitempty"` // none if Bits is given, else at least one
	Fields     []Field    `json:"fields,omitempty"`     // names are unique among modalities and fields together
	IndexOnly  bool       `json:"index_only,omitempty"` // vectors were left out when the database was copied; see WithoutVectors
	Indexes    uint32     `json:"indexes,omitempty"`    // how many indexes of vectors there have been; the last one has this number
	Encoders   []Encoder  `json:"encoders,omitempty"`   // by modality, in the order of Modalities, and input; see WithEncoders
}

// CodesOnly reports whether items bring their codes and have no vectors.
func (d *Descriptor) CodesOnly() bool { return d.Bits != 0 }

// ModalityOf returns the position of the modality with a name. One that is not there is an
// ErrInvalid that lists those that are.
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

// FieldOf returns the position of the field with a name, which is its codec.Field.ID. One that
// is not there is an ErrInvalid that lists those that are.
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

// Names lists the names of modalities or fields for the text of an error.
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

// Encode returns the descriptor in the form in which DecodeDescriptor reads it.
func (d *Descriptor) Encode() ([]byte, error) { return json.Marshal(d) }

// Check reports why there can be no collection with this schema, as an ErrInvalid: limits,
// names that clash, both vectors and codes or neither. It leaves out Name, which CheckName is
// for, and what Settle sees to: metrics and spaces.
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
		case String, Int, Float, Bool, Time:
		default:
			return fault.Invalid("field %q: unknown type %q: string, int, float, bool and time are possible", f.Name, Shortened(string(f.Type)))
		}
	}
	return d.checkEncoders()
}

// CheckName checks the name of a collection, modality or field; what says in words of which.
// It admits letters, digits, '_', '-' and '.', so that names can stand unquoted in expressions
// and in flags such as NAME=FILE.
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

// DecodeDescriptor reads and checks a stored descriptor. Its errors are for the caller to word, as damage of
// the record that held b.
func DecodeDescriptor(b []byte) (*Descriptor, error) {
	d := new(Descriptor)
	if err := json.Unmarshal(b, d); err != nil {
		return nil, err
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	settled := *d
	if err := settled.Settle(); err != nil {
		return nil, err
	}
	if !slices.Equal(settled.Modalities, d.Modalities) {
		return nil, errors.New("metrics or spaces of modalities that no schema is stored with")
	}
	return d, CheckName("collection", d.Name)
}

// An index-only collection is a copy of a learned one. It has all that answers searches,
// filters and Get, but neither the vectors of its items nor what only learning needs:
// statistics, what rows have taught, what is pending. Nothing can be written to it, as a write
// would need the vectors; its spaces can be activated and dropped.

// WithoutVectors returns the descriptor that the collection has in an index-only copy of the
// database. A collection whose items bring codes has no vectors to leave out: then it is d
// itself.
func (d *Descriptor) WithoutVectors() *Descriptor {
	if d.CodesOnly() {
		return d
	}
	only := *d
	only.IndexOnly, only.Indexes = true, 0
	return &only
}

// WithIndex returns the descriptor of the collection when it has one more index of vectors, with the
// number Indexes.
func (d *Descriptor) WithIndex() *Descriptor {
	with := *d
	with.Indexes++
	return &with
}

// Changeable returns an ErrReadOnly if the collection is index-only: its items, and what is
// learned from them, cannot change, as that takes vectors. Activating and dropping spaces is
// possible all the same.
func (d *Descriptor) Changeable() error {
	if !d.IndexOnly {
		return nil
	}
	return fmt.Errorf("%w: collection %q is index-only, a copy without the vectors that this takes: write to the database that it is a copy of, or restore a full backup",
		fault.ErrReadOnly, d.Name)
}

// LacksVectors returns the error of a call that wants vectors of items from an index-only
// collection. what says in words what for.
func (d *Descriptor) LacksVectors(what string) error {
	return fault.Invalid("collection %q is index-only: its items have no vectors %s", d.Name, what)
}

// Match returns for each modality of a model its position in the collection. They match by
// name, and have to have the same dimensions and form. The caller words the error: it is about
// a stored model that is damaged, or about one that a user has brought.
func (d *Descriptor) Match(m *model.Model) ([]int, error) { return d.MatchAll(m.Modalities()) }

// MatchAll is Match of the modalities of a model.
func (d *Descriptor) MatchAll(modalities []model.Modality) ([]int, error) {
	var positions []int
	for _, mod := range modalities {
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
