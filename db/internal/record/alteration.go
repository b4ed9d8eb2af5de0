package record

import (
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
)

// With returns the descriptor of the collection when modalities and fields have been added, and
// spaces and metrics have changed. What is added comes last, as positions never change. The
// collection has to be one that can be altered, and must not have the names.
func (d *Descriptor) With(modalities []Modality, fields []Field, change Respacing) (*Descriptor, error) {
	switch {
	case d.IndexOnly:
		return nil, d.unalterable()
	case len(modalities)+len(fields)+len(change.SpaceOf)+len(change.Metrics) == 0:
		return nil, fault.Invalid("alter collection %q: neither modalities nor fields are given to add, nor fields to index, nor metrics or spaces to change", d.Name)
	case d.CodesOnly() && len(modalities) > 0:
		return nil, fault.Invalid("modality %q: the items of collection %q bring codes: fields can be added, modalities cannot",
			Shortened(modalities[0].Name), d.Name)
	}
	for _, m := range modalities {
		if err := d.unused("modality", m.Name); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		if err := d.unused("field", f.Name); err != nil {
			return nil, err
		}
	}
	out := *d
	out.Modalities = slices.Concat(d.Modalities, modalities)
	out.Fields = slices.Concat(d.Fields, fields)
	if err := out.Check(); err != nil {
		return nil, err
	}
	return &out, out.settle(len(d.Modalities), change)
}

// A FieldIndex says whether a field is indexed.
type FieldIndex byte

// What a field can be.
const (
	FieldNotIndexed FieldIndex = iota
	FieldIndexing
	FieldIndexed
)

// WithFields returns the descriptor of the collection when fields are indexed, are being indexed, or are
// not. One that is not there is an ErrInvalid.
func (d *Descriptor) WithFields(names []string, to FieldIndex) (*Descriptor, error) {
	if d.IndexOnly {
		return nil, d.unalterable()
	}
	out := *d
	out.Fields = slices.Clone(d.Fields)
	for _, name := range names {
		i, err := d.FieldOf(name)
		if err != nil {
			return nil, err
		}
		out.Fields[i].Indexed, out.Fields[i].Indexing = to == FieldIndexed, to == FieldIndexing
	}
	return &out, nil
}

// unalterable returns the error of altering an index-only collection.
func (d *Descriptor) unalterable() error {
	return fmt.Errorf("%w: collection %q is index-only, a copy that stays as it is: alter the database that it is a copy of",
		fault.ErrReadOnly, d.Name)
}

// unused refuses a name that a modality or a field of the collection has.
func (d *Descriptor) unused(what, name string) error {
	for _, m := range d.Modalities {
		if m.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a modality of that name, of dimension %d, which stays as it is",
				fault.ErrExists, what, name, d.Name, m.Dim)
		}
	}
	for _, f := range d.Fields {
		if f.Name == name {
			return fmt.Errorf("%w: %s %q: collection %q has a field of that name, of type %s, which stays as it is",
				fault.ErrExists, what, name, d.Name, f.Type)
		}
	}
	return nil
}

// Lacks returns an error, an ErrExists, that says what the collection has not, or otherwise
// than, wanted, which is settled; nil if nothing. It may have more.
func (d *Descriptor) Lacks(wanted *Descriptor) error {
	differs := func(format string, args ...any) error {
		return fmt.Errorf("%w: collection %q, %s", fault.ErrExists, d.Name, fmt.Sprintf(format, args...))
	}
	if wanted.Bits != d.Bits {
		return differs("whose items bring codes of %d bits, not %d (0: they bring vectors)", d.Bits, wanted.Bits)
	}
	for _, m := range wanted.Modalities {
		i := slices.IndexFunc(d.Modalities, func(o Modality) bool { return o.Name == m.Name })
		if i < 0 {
			return differs("without modality %q: Alter adds it", m.Name)
		}
		has := d.Modalities[i]
		has.SpaceOf = "" // of wanted modalities, in their order
		for _, o := range wanted.Modalities {
			if o.Name == m.Name {
				break
			}
			if j, err := d.ModalityOf(o.Name); err == nil && d.Modalities[j].space() == d.Modalities[i].space() {
				has.SpaceOf = o.Name
				break
			}
		}
		if has != m {
			return differs("whose modality %q is %s, not %s", m.Name, spellModality(has), spellModality(m))
		}
	}
	for _, f := range wanted.Fields {
		i := slices.IndexFunc(d.Fields, func(o Field) bool { return o.Name == f.Name })
		switch {
		case i < 0:
			return differs("without field %q: Alter adds it", f.Name)
		case d.Fields[i].Type == f.Type && f.Indexed && !d.Fields[i].Indexed:
			return differs("whose field %q is not indexed: Alter indexes it", f.Name)
		case d.Fields[i].Type != f.Type || d.Fields[i].Indexed != f.Indexed:
			return differs("whose field %q is %s, not %s", f.Name, spellField(d.Fields[i]), spellField(f))
		}
	}
	return nil
}

func spellModality(m Modality) string {
	s := spellForm(m)
	if m.Metric != "" {
		s += ", by " + string(m.Metric)
	}
	if m.SpaceOf != "" {
		s += ", in the space of " + m.SpaceOf
	}
	return s
}

func spellForm(m Modality) string {
	if m.Sparse {
		return fmt.Sprintf("sparse, of dimension %d", m.Dim)
	}
	return fmt.Sprintf("of dimension %d", m.Dim)
}

func spellField(f Field) string {
	if f.Indexed {
		return fmt.Sprintf("of type %s, indexed", f.Type)
	}
	return fmt.Sprintf("of type %s, not indexed", f.Type)
}
