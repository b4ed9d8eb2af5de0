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

// codedOf returns the codes that an item gets if it is written now.
func (h *history) codedOf(sp *space, in *db.Collection, it *item) (*coded, error) {
	if !sp.settled {
		return &coded{}, nil
	}
	if set := sp.labelSet(it); set != "" {
		code, seen := sp.labelCodes[set]
		out := &coded{by: map[string]string{}, labelled: true, settled: seen}
		for _, t := range sp.targetsOf(it) {
			out.by[t] = code // "" if the code is not known yet; the map then names the targets alone
		}
		return out, nil
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
	out := &coded{by: map[string]string{}, settled: true}
	if len(vectors) == 0 {
		return out, nil
	}
	for _, t := range sp.targetsOf(it) {
		code, _, err := in.Encode(t, &db.Item{Vectors: vectors})
		switch {
		case errors.Is(err, db.ErrInvalid): // the vector is far from all anchors
		case err != nil:
			return nil, err
		default:
			out.by[t] = string(code)
		}
	}
	return out, nil
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
	by, from := map[string]string{}, map[string]string{}
	if got.Code != nil {
		by[""], from[""] = string(got.Code), got.CodeFrom
	}
	for t, code := range got.Codes {
		by[t], from[t] = string(code.Code), code.From
	}
	if sp == nil {
		if len(by) > 0 {
			return fmt.Errorf("item %q has codes %x, and there is no space", key, by)
		}
		return nil
	}
	if err := c.sameCodes(sp, key, by, from); err != nil {
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

// sameCodes compares the codes of an item, by target.
func (c *collection) sameCodes(sp *space, key string, by, from map[string]string) error {
	it, want := c.items[key], sp.codes[key]
	if want == nil {
		want = &coded{}
	}
	for t, f := range from {
		_, isModality := it.vectors[f]
		ok := f == "given" && c.codesOnly() || f == "labels" && len(it.labels) > 0 || f == "fused" || isModality
		if !ok || sp.settled && !c.codesOnly() && (f == "labels") != (sp.labelSet(it) != "") {
			return fmt.Errorf("the code for %q comes from %q", t, f)
		}
	}
	if want.settled {
		if !maps.Equal(by, want.by) {
			return fmt.Errorf("codes %x, want %x", by, want.by)
		}
		return nil
	}
	if want.labelled { // the first item with these labels
		code := ""
		for _, t := range sp.targetsOf(it) {
			if code == "" {
				code = by[t]
			}
			if by[t] == "" || by[t] != code {
				return fmt.Errorf("codes %x by the same labels", by)
			}
		}
		if len(by) != len(want.by) {
			return fmt.Errorf("codes %x, want some for %d targets", by, len(want.by))
		}
		if set := sp.labelSet(it); code != "" {
			if known, seen := sp.labelCodes[set]; seen && known != code {
				return fmt.Errorf("code %x, others with the labels %q have %x", code, set, known)
			}
			sp.labelCodes[set] = code
		}
	}
	sp.codes[key] = &coded{by: by, labelled: want.labelled, settled: true}
	return nil
}
