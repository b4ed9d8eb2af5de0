package metamorphic

import (
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// alter adds modalities and fields to a collection, indexes fields, and changes metrics and spaces.
func (h *history) alter(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	err = handle.Alter(h.ctx, op.Schema.alteration())
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return err
	}
	return h.altered(op)
}

func (s *Schema) alteration() db.Alteration {
	return db.Alteration{AddModalities: s.Modalities, AddFields: s.Fields, IndexFields: s.Index, SpaceOf: s.SpaceOf, Metrics: s.Metrics}
}

// with returns the schema after an alteration, or ErrInvalid for metrics or spaces that cannot be.
func (s *Schema) with(add *Schema) (*Schema, error) {
	all, err := settled(slices.Concat(s.Modalities, add.Modalities), len(s.Modalities), add)
	return &Schema{Bits: s.Bits, Modalities: all, Fields: slices.Concat(s.Fields, add.Fields), Index: slices.Concat(s.Index, add.Index)}, err
}

// altered takes over the alteration of a collection. Its spaces stay as they are: a
// model knows the modalities that it was trained with.
func (h *history) altered(op *Op) error {
	next := h.now.fork()
	c := next.edit(op.In)
	s, err := c.schema.with(op.Schema) // worlds share the arrays of its lists, so new ones are made
	if err != nil {
		return err
	}
	c.schema = *s
	return h.commit(next, true)
}

// alterable returns the error with which the database must refuse to add add to a
// collection, or nil.
func (c *collection) alterable(add *Schema) error {
	if slices.ContainsFunc(add.Index, func(name string) bool { return !c.schema.hasField(name) }) {
		return db.ErrInvalid
	}
	names := map[string]int{}
	for _, m := range add.Modalities {
		names[m.Name]++
	}
	for _, f := range add.Fields {
		names[f.Name]++
	}
	if len(names)+len(add.Index)+len(add.SpaceOf)+len(add.Metrics) == 0 || c.codesOnly() && len(add.Modalities) > 0 {
		return db.ErrInvalid
	}
	for name := range names {
		if c.schema.has(name) || c.schema.hasField(name) {
			return db.ErrExists
		}
	}
	for name, n := range names {
		if n > 1 || name == "" {
			return db.ErrInvalid
		}
	}
	if slices.ContainsFunc(add.Modalities, func(m db.Modality) bool { return m.Dim < 1 || m.Dim > db.MaxDim }) ||
		slices.ContainsFunc(add.Fields, func(f db.Field) bool { return someOf[f.Type] == nil }) {
		return db.ErrInvalid
	}
	_, err := c.schema.with(add)
	return err
}

// laneAlter alters a collection while other lanes write. Their items do not have the
// new modalities and fields.
func (h *history) laneAlter(op *Op) (func() error, error) {
	c := h.now.collections[op.In]
	if c == nil {
		return nil, nil
	}
	handle, err := h.d.Collection(op.In)
	if err != nil {
		return nil, err
	}
	err = handle.Alter(h.ctx, op.Schema.alteration())
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return nil, passed(err)
	}
	return func() error { return h.altered(op) }, nil
}
