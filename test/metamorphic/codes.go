package metamorphic

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// settle notes the codes of items that were just written: the codes of their labels, or
// what the present projections make of their vectors.
func (h *history) settle(w *world, name string, keys []string) error {
	c := w.edit(name)
	if c == nil || c.codesOnly() {
		return nil
	}
	handle, err := h.d.Collection(name)
	if err != nil {
		return err
	}
	for _, sp := range c.spaces {
		if err := h.settleIn(c, sp, handle, keys); err != nil {
			return err
		}
	}
	return nil
}

// settleIn is settle for one space.
func (h *history) settleIn(c *collection, sp *space, handle *db.Collection, keys []string) error {
	in, err := handle.InSpace(sp.number)
	if err != nil {
		return err
	}
	for _, key := range keys {
		it := c.items[key]
		if it == nil {
			delete(sp.codes, key)
			continue
		}
		if sp.codes[key], err = h.codedOf(sp, in, it); err != nil {
			return fmt.Errorf("item %q in space %d: %w", key, sp.number, err)
		}
	}
	return nil
}

// codedOf returns the code that an item gets if it is written now.
func (h *history) codedOf(sp *space, in *db.Collection, it *item) (*coded, error) {
	if !sp.settled {
		return &coded{}, nil
	}
	if set := sp.labelSet(it); set != "" {
		code, seen := sp.labelCodes[set]
		return &coded{code: code, has: true, labelled: true, settled: seen}, nil
	}
	if h.learns() || sp.moving {
		return &coded{}, nil // a background update may have changed the projections
	}
	vectors := map[string][]float32{}
	for _, m := range sp.modalities {
		if x := it.vectors[m]; x != nil {
			vectors[m] = x
		}
	}
	if len(vectors) == 0 {
		return &coded{settled: true}, nil
	}
	code, _, err := in.Encode(&db.Item{Vectors: vectors})
	switch {
	case errors.Is(err, db.ErrInvalid): // the vector is far from all anchors
		return &coded{settled: true}, nil
	case err != nil:
		return nil, err
	}
	return &coded{code: string(code), has: true, settled: true}, nil
}

// same compares an item with the item got that the database returns, as the space sp
// shows it. got is nil if the database has none. It notes codes that only the database
// can know.
func (c *collection) same(sp *space, key string, got *db.Item) error {
	it := c.items[key]
	if got.Key != key {
		return fmt.Errorf("item %q is called %q", key, got.Key)
	}
	if err := c.sameContent(it, got); err != nil {
		return fmt.Errorf("item %q: %w", key, err)
	}
	if sp == nil {
		if got.Code != nil {
			return fmt.Errorf("item %q has code %x, and there is no space", key, got.Code)
		}
		return nil
	}
	if err := c.sameCode(sp, key, got); err != nil {
		return fmt.Errorf("item %q in space %d: %w", key, sp.number, err)
	}
	return nil
}

func (c *collection) sameContent(it *item, got *db.Item) error {
	if string(got.Payload) != it.payload {
		return fmt.Errorf("payload %q, want %q", got.Payload, it.payload)
	}
	if !maps.Equal(got.Fields, it.fields) {
		return fmt.Errorf("fields %v, want %v", got.Fields, it.fields)
	}
	if a, b := slices.Sorted(slices.Values(got.Labels)), slices.Sorted(slices.Values(it.labels)); !slices.Equal(a, b) {
		return fmt.Errorf("labels %q, want %q", a, b)
	}
	if c.indexOnly {
		if has := slices.Sorted(maps.Keys(it.vectors)); len(got.Vectors)+len(got.Sparse) != 0 || !slices.Equal(slices.Sorted(slices.Values(got.Modalities)), has) {
			return fmt.Errorf("vectors %v, %v, and modalities %q of an index-only collection, want %q", got.Vectors, got.Sparse, got.Modalities, has)
		}
		return nil
	}
	if len(got.Vectors)+len(got.Sparse) != len(it.vectors) {
		return fmt.Errorf("%d and %d vectors, want %d", len(got.Vectors), len(got.Sparse), len(it.vectors))
	}
	for name, x := range it.vectors {
		y := got.Vectors[name]
		if m := c.modality(name); m.Sparse {
			s, ok := got.Sparse[name]
			if !ok {
				return fmt.Errorf("no sparse vector %q", name)
			}
			y = make([]float32, m.Dim)
			for e, j := range s.Index {
				y[j] = s.Value[e]
			}
		}
		if !slices.Equal(x, y) {
			return fmt.Errorf("vector %q is %v, want %v", name, y, x)
		}
	}
	return nil
}

// sameCode compares the code of an item.
func (c *collection) sameCode(sp *space, key string, got *db.Item) error {
	it, want := c.items[key], sp.codes[key]
	if want == nil {
		want = &coded{}
	}
	code, from := string(got.Code), got.CodeFrom
	if code != "" {
		_, isModality := it.vectors[from]
		ok := from == "given" && c.codesOnly() || from == "labels" && len(it.labels) > 0 || from == "fused" || isModality
		if !ok || sp.settled && !c.codesOnly() && (from == "labels") != (sp.labelSet(it) != "") {
			return fmt.Errorf("the code comes from %q", from)
		}
	}
	if want.settled {
		if code != want.code {
			return fmt.Errorf("code %x, want %x", code, want.code)
		}
		return nil
	}
	if want.labelled { // the first item with these labels
		if code == "" {
			return errors.New("no code, and it has known labels")
		}
		set := sp.labelSet(it)
		if known, seen := sp.labelCodes[set]; seen && known != code {
			return fmt.Errorf("code %x, others with the labels %q have %x", code, set, known)
		}
		sp.labelCodes[set] = code
	}
	sp.codes[key] = &coded{code: code, has: code != "", labelled: want.labelled, settled: true}
	return nil
}
