package db

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
)

// EnsureCollection returns the collection of that name, and creates it where there is none,
// as CreateCollection does; with others that call it at the same time, one creates it. A
// collection that is there has to have what the schema names, and may have more modalities
// and fields, as Alter adds them; else the error is ErrExists and says what differs. It
// costs nothing where the collection is there.
func (d *DB) EnsureCollection(ctx context.Context, name string, schema Schema) (*Collection, error) {
	if err := schema.checkMade(); err != nil {
		return nil, err
	}
	c, err := d.Collection(name)
	if errors.Is(err, fault.ErrNotFound) {
		if c, err = d.CreateCollection(ctx, name, schema); errors.Is(err, fault.ErrExists) {
			c, err = d.Collection(name) // somebody was faster
		} else {
			return c, err
		}
	}
	if err != nil {
		return nil, err
	}
	has, err := c.Schema()
	if err == nil {
		err = schema.lacking(name, &has)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// lacking says what of the schema a collection with another one does not have, nil if
// nothing.
func (s *Schema) lacking(name string, has *Schema) error {
	differs := func(format string, args ...any) error {
		return fmt.Errorf("%w: collection %q, %s", fault.ErrExists, name, fmt.Sprintf(format, args...))
	}
	if s.Bits != has.Bits {
		return differs("whose items bring codes of %d bits, not %d (0: they bring vectors)", has.Bits, s.Bits)
	}
	for _, m := range s.Modalities {
		i := slices.IndexFunc(has.Modalities, func(o Modality) bool { return o.Name == m.Name })
		switch {
		case i < 0:
			return differs("without modality %q: Alter adds it", m.Name)
		case has.Modalities[i] != m:
			return differs("whose modality %q is %s, not %s", m.Name, spellModality(has.Modalities[i]), spellModality(m))
		}
	}
	for _, f := range s.Fields {
		i := slices.IndexFunc(has.Fields, func(o Field) bool { return o.Name == f.Name })
		switch {
		case i < 0:
			return differs("without field %q: Alter adds it", f.Name)
		case has.Fields[i] != f:
			return differs("whose field %q is %s, not %s", f.Name, spellField(has.Fields[i]), spellField(f))
		}
	}
	return nil
}

func spellModality(m Modality) string {
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
