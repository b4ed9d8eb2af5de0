package db

import (
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is one entry of a collection, under a key. Put copies the item before it returns; the
// caller owns items that the database returns.
type Item struct {
	// Key is UTF-8, 1 to MaxKeyBytes bytes. An item without a key gets the next free decimal
	// number of the collection's counter, which Put returns (see Batch.Keys). Such an item
	// has contents.
	//
	// In a learned collection an item may have a key and no contents: it reserves the key. With
	// PutIf one of many programs takes a key, and Merge brings the vectors later. Such an
	// item counts, and has no code, so searches do not find it.
	Key string

	// Vectors and Sparse hold dense and sparse vectors by modality; an item may lack any
	// modality. Either map takes vectors of any modality, and a modality stands in one of
	// them. Returned items have the vectors of sparse modalities in Sparse.
	Vectors map[string][]float32
	Sparse  map[string]Sparse

	// Modalities names the modalities of an item of an index-only collection, which has no
	// vectors. It is nil in all other items, and Put ignores it.
	Modalities []string

	// Code is the binary code, bits/8 bytes; bit j is bit j mod 8 of byte j/8. Items of a
	// codes-only collection bring it. In a learned collection the database makes it, and Put
	// ignores it.
	Code []byte

	// CodeFrom says where the code of a returned item comes from: "labels"; "fused", the
	// projections of its vectors; the name of a modality, if the model takes the code from
	// that one alone; "given"; or "" if there is no code.
	CodeFrom string

	// Labels is a set of strings; empty means unlabelled.
	Labels []string

	// Fields holds values of declared fields: string, int64, float64, bool or time.Time. Put
	// takes numbers of any Go type, whole numbers for float fields, and text for time fields
	// (see FieldType). JSON has times as text, and so have items decoded from JSON.
	Fields map[string]any

	Payload []byte
}

// A Sparse is a sparse vector: Value[e] is the number of dimension Index[e]. Indices are strictly
// ascending, below the dimensions of the modality. Zeros are dropped. A vector without numbers,
// such as that of an empty text, is a vector: the item has the modality.
type Sparse struct {
	Index []uint32  `json:"i"`
	Value []float32 `json:"v"`
}

// itemOf returns an item that has been read in the terms of the caller.
func itemOf(cv *state.CollectionView, in *search.Item) *Item {
	it := &Item{Key: in.Key, Labels: in.Labels, Payload: in.Payload}
	for t, m := range cv.Modalities {
		x := in.Vectors[t]
		switch {
		case cv.IndexOnly && cv.Presence[t].Contains(in.Row):
			it.Modalities = append(it.Modalities, m.Name)
		case !x.Present():
		case m.Sparse:
			enter(&it.Sparse, m.Name, Sparse(x))
		default:
			enter(&it.Vectors, m.Name, x.Value)
		}
	}
	for _, f := range in.Fields {
		enter(&it.Fields, cv.Fields[f.ID].Name, search.Value(f.Value))
	}
	it.Code, it.CodeFrom = in.Code, in.From
	return it
}

// enter sets a key of a map, which it makes where there is none.
func enter[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// isEmpty reports whether the item has nothing in it, whatever its key and code are.
func (it *Item) isEmpty() bool {
	return len(it.Vectors)+len(it.Sparse)+len(it.Labels)+len(it.Fields)+len(it.Payload) == 0
}

// checkItem makes c a copy of an item, in the terms of the collection. A partial item, for Merge,
// need not have a code.
func checkItem(c *record.Item, d *record.Descriptor, it *Item, partial bool) error {
	if err := record.CheckKey(it.Key); err != nil {
		return err
	}
	if it.Key == "" && it.isEmpty() && !(d.CodesOnly() && len(it.Code) > 0) {
		return fault.Invalid("the item has nothing in it, nor a key")
	}
	c.Key = it.Key
	fail := func(err error) error { return fault.OfItem(it.Key, err) }
	if len(it.Vectors)+len(it.Sparse) > 0 {
		c.Vectors = make([]model.Vector, len(d.Modalities))
	}
	add := func(name string, dense []float32, sparse *Sparse) error {
		t, err := d.ModalityOf(name)
		if err != nil {
			return err
		}
		if c.Vectors[t].Present() {
			return fault.Invalid("modality %q: there is a dense and a sparse vector of it", name)
		}
		if m := &d.Modalities[t]; sparse == nil {
			c.Vectors[t], err = m.OfDense(dense)
		} else {
			c.Vectors[t], err = m.OfSparse(sparse.Index, sparse.Value)
		}
		return err
	}
	for name, x := range it.Vectors {
		if err := add(name, x, nil); err != nil {
			return fail(err)
		}
	}
	for name, x := range it.Sparse {
		if err := add(name, nil, &x); err != nil {
			return fail(err)
		}
	}
	switch {
	case !d.CodesOnly():
	case it.Code == nil && partial:
	case len(it.Code) != codec.Bytes(d.Bits):
		return fail(fault.Invalid("code of %d bits, collection %q has codes of %d",
			8*len(it.Code), d.Name, d.Bits))
	default:
		c.Code = codec.NewCode(d.Bits)
		c.Code.SetBytes(it.Code)
	}
	if it.Labels != nil {
		c.Labels = []string{} // empty and not nil: to be taken away by Merge
	}
	if len(it.Labels) > record.MaxLabels {
		return fail(fault.Invalid("%d labels, at most %d are possible", len(it.Labels), record.MaxLabels))
	}
	for _, l := range it.Labels {
		if err := record.CheckLabel(l); err != nil {
			return fail(err)
		}
		if !slices.Contains(c.Labels, l) {
			c.Labels = append(c.Labels, l)
		}
	}
	for name, v := range it.Fields {
		i, err := d.FieldOf(name)
		if err != nil {
			return fail(err)
		}
		if v, err = d.Fields[i].CheckValue(v); err != nil {
			return fail(err)
		}
		c.Fields = append(c.Fields, codec.Field{ID: uint32(i), Value: v})
	}
	slices.SortFunc(c.Fields, func(a, b codec.Field) int { return int(a.ID) - int(b.ID) })
	if len(it.Payload) > record.MaxPayloadBytes {
		return fail(fault.Invalid("payload of %d bytes, at most %d are possible", len(it.Payload), record.MaxPayloadBytes))
	}
	for t, v := range c.Vectors {
		c.Vectors[t] = record.CloneVector(v)
	}
	c.Payload = slices.Clone(it.Payload)
	return nil
}
