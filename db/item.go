package db

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
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

	// CodeFrom is the source of the code of a returned item: "labels"; "fused", the projections of its
	// vectors; the name of a modality, if the model takes the code from that one alone; "given"; or "" if
	// there is no code.
	CodeFrom string

	// Labels is a set of strings; empty means unlabelled.
	Labels []string

	// Fields holds values of declared fields: string, int64, float64, bool or time.Time. Put
	// takes numbers of any Go type, whole numbers for float fields, and text for time fields
	// (see FieldType). JSON has times as text, and so have items decoded from JSON.
	Fields map[string]any

	Payload []byte
}

// A Sparse is a sparse vector: Value[e] is the number of dimension Index[e]. Indices are strictly ascending,
// below the dimensions of the modality. Zeros are dropped. A vector without numbers, as of an empty text,
// counts as a vector: the item has the modality.
type Sparse struct {
	Index []uint32  `json:"i"`
	Value []float32 `json:"v"`
}

// itemOf converts an item that has been read for the caller.
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

// enter sets a key of a map, and makes the map if it is nil.
func enter[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// isEmpty reports whether the item has no contents. It ignores key and code.
func (it *Item) isEmpty() bool {
	return len(it.Vectors)+len(it.Sparse)+len(it.Labels)+len(it.Fields)+len(it.Payload) == 0
}

// checkItem checks an item and copies it to c, in the terms of the collection. A partial item, for Merge,
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
		c.Labels = []string{} // empty and not nil: Merge removes the labels
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
		return fail(fault.Invalid("payload of %d bytes, at most %d are possible", len(it.Payload),
			record.MaxPayloadBytes))
	}
	for t, v := range c.Vectors {
		c.Vectors[t] = record.CloneVector(v)
	}
	c.Payload = slices.Clone(it.Payload)
	return nil
}

// CheckItem returns why a collection with this schema refuses to store an item, or with merge to merge it,
// and nil if it does not. It copies the item. A program that sends items elsewhere learns at once what is
// wrong.
func (s Schema) CheckItem(it *Item, merge bool) error {
	if it == nil {
		return fault.Invalid("no item")
	}
	d, err := s.descriptor("")
	if err != nil {
		return err
	}
	return checkItem(&record.Item{}, d, it, merge)
}

// Keys yields the keys with a prefix, in the order of their bytes; the empty prefix means all. It shows the
// state at the start of the iteration, or of the Snapshot, and holds it until the end. It reads one small
// record a key, and no items. An error ends it.
func (c *Collection) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(string) error) error {
		return search.EachKey(ctx, cv, v.Snap, prefix, func(_ uint32, key string) error { return yield(key) })
	})
}

// Items yields the items that match the expression, see Query.Where, in database order; the empty expression
// matches all. Database order is the order in which the items were first put; an item that was deleted and
// put again is new. args are the values of the placeholders, see Query.Args. Items shows the state at the
// start of the iteration. It reads only matching items. An error ends it.
func (c *Collection) Items(ctx context.Context, where string, args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		return search.EachItem(ctx, cv, v.Snap, where, args,
			func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// Sample yields n random items, n at least 1, that match the expression (see Query.Where), or all if there
// are fewer. The empty expression matches all items. args are the values of the placeholders, see Query.Args.
// Every set of n items is equally likely; a seed yields the same items until the next write. Items come in
// database order, each at the cost of a Get. An error ends it.
func (c *Collection) Sample(ctx context.Context, n int, seed uint64, where string,
	args ...any) iter.Seq2[*Item, error] {
	return each(c, func(v *state.View, cv *state.CollectionView, yield func(*Item) error) error {
		if n < 1 {
			return fault.Invalid("a sample of %d items: 1 or more are possible", n)
		}
		return search.EachOfSample(ctx, cv, v.Snap, n, seed, where, args,
			func(it *search.Item) error { return yield(itemOf(cv, it)) })
	})
}

// Count returns the number of items that match the expression, see Query.Where. The empty expression matches
// all, at no cost. args are the values of the placeholders, see Query.Args. Count reads items only for fields
// without an index.
func (c *Collection) Count(ctx context.Context, where string, args ...any) (int, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) (n int, err error) {
		if where == "" {
			return cv.Items, search.NoArgs(args)
		}
		err = search.EachMatching(ctx, cv, v.Snap, where, args, func(_ uint16, found *roaring.Bitmap) bool {
			n += int(found.GetCardinality())
			return true
		})
		return n, err
	})
}

// Labels returns the labels of the items of the collection, in the order in which they first appeared. It
// leaves out labels without items; they keep their place for when an item has them again. The first call
// reads one record a label, later calls the records of changed labels. Facets counts the items of each.
func (c *Collection) Labels() ([]string, error) {
	return look(c, func(v *state.View, cv *state.CollectionView) ([]string, error) {
		ids, err := cv.LabelsInUse(v.Snap)
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, ids.GetCardinality())
		for it := ids.Iterator(); it.HasNext(); {
			id := it.Next()
			if int64(id) >= int64(len(cv.Names)) {
				return nil, fault.Corrupt(fmt.Errorf("id %d of %d", id, len(cv.Names)),
					"label of collection %q", cv.Name)
			}
			names = append(names, cv.Names[id])
		}
		return names, nil
	})
}

// RenameLabel gives a label another name, durably and in one commit, in a time that does not depend on the
// number of items. Items and codes stay as they are, and models still know the label. Snapshots and reads in
// progress see the old name. If an item brings the old name again, it is a new label, unknown to all models.
//
// Errors: ErrNotFound if no item has the label old; ErrExists if items have the label name;
// ErrInvalid for an impossible or equal name; ErrReadOnly for an index-only collection.
func (c *Collection) RenameLabel(ctx context.Context, old, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.db.state.Guard.Enter(); err != nil {
		return err
	}
	defer c.db.state.Guard.Leave()
	if err := c.changeable(); err != nil {
		return err
	}
	for _, l := range []string{old, name} {
		if err := record.CheckLabel(l); err != nil {
			return err
		}
	}
	if old == name {
		return fault.Invalid("label %q: that is its name already", record.Shortened(old))
	}
	err := c.inside().Do(ctx, 0,
		func(tx *state.Tx, s *state.CollectionState) error { return tx.RenameLabel(s, old, name) })
	if err == nil {
		c.db.changed(ctx, event.LabelRenamed, event.Event{Collection: c.name})
	}
	return err
}
