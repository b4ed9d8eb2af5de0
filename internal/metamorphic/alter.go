package metamorphic

import (
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// alter adds modalities and fields to a collection.
func (h *history) alter(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	err = handle.Alter(h.ctx, db.Alteration{AddModalities: op.Schema.Modalities, AddFields: op.Schema.Fields})
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return err
	}
	return h.altered(op)
}

// altered takes over the alteration of a collection. Its spaces stay as they are: a
// model knows the modalities that it was trained with.
func (h *history) altered(op *Op) error {
	next := h.now.fork()
	s := &next.edit(op.In).schema // worlds share the arrays of these lists, so new ones are made
	s.Modalities, s.Fields = slices.Concat(s.Modalities, op.Schema.Modalities), slices.Concat(s.Fields, op.Schema.Fields)
	return h.commit(next, true)
}

// alterable returns the error with which the database must refuse to add add to a
// collection, or nil.
func (c *collection) alterable(add *Schema) error {
	names := map[string]int{}
	for _, m := range add.Modalities {
		names[m.Name]++
	}
	for _, f := range add.Fields {
		names[f.Name]++
	}
	if len(names) == 0 || c.codesOnly() && len(add.Modalities) > 0 {
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
	return nil
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
	err = handle.Alter(h.ctx, db.Alteration{AddModalities: op.Schema.Modalities, AddFields: op.Schema.Fields})
	if err := expect(err, c.alterable(op.Schema)); err != nil {
		return nil, passed(err)
	}
	return func() error { return h.altered(op) }, nil
}
