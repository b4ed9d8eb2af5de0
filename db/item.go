package db

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is what a collection stores under a key. Putting one copies what it
// needs before it returns; items that the database returns belong to the caller.
type Item struct {
	// Key is UTF-8, 1 to MaxKeyBytes bytes. An item put without a key gets the
	// next decimal number of the collection's own counter that is not in use, which Put
	// returns (see Batch.Keys, too). An item may be nothing but a key, in a learned
	// collection; without a key it has something in it.
	Key string

	// Vectors and Sparse hold features by modality, dense and sparse; an item may
	// lack any of them. Either takes vectors of any modality, each in one of them.
	// Items that the database returns have those of sparse modalities in Sparse.
	Vectors map[string][]float32
	Sparse  map[string]Sparse

	// Modalities names the modalities that the item has, in items that the database
	// returns from an index-only collection, which has none of their vectors. Nil
	// everywhere else, and ignored on the way in.
	Modalities []string

	// Code is the binary code, bits/8 bytes, bit j being bit j mod 8 of byte
	// j/8. Items of a codes-only collection bring it; in a learned one it is
	// made by the database and ignored on the way in.
	Code []byte

	// CodeFrom says, in items that the database returns, where the code comes
	// from: "labels", "fused" (the projections of its features, as the model fuses
	// them), the name of a modality (the only one that the model lets count of
	// several), "given", or empty where there is no code.
	CodeFrom string

	// Codes holds the codes by target modality, in items that the database returns,
	// where a training with model.ViewsTarget has made one for each that the item
	// has; then Code and CodeFrom are empty. It is ignored on the way in.
	Codes map[string]TargetCode

	// Labels is a set of strings; empty means unlabelled.
	Labels []string

	// Fields holds values of the declared fields: string, int64 (int is
	// accepted), float64 or bool.
	Fields map[string]any

	Payload []byte
}

// A TargetCode is the code by which an item is found in searches for one modality.
type TargetCode struct {
	Code []byte // as Item.Code
	From string // as Item.CodeFrom
}

// checked is an item in the terms of its collection. What it points to is its
// own, safe to keep.
type checked struct {
	key     string
	vectors []model.Vector // by modality, in its form, see vector; nil: none
	code    codec.Code     // codes-only; nil where absent
	labels  []string       // distinct
	fields  []codec.Field
	payload []byte
}

// itemBytes is what an item takes besides what it holds.
const itemBytes = 64

// bytes estimates what storing the item takes.
func (it *checked) bytes() int {
	n := itemBytes + len(it.key) + len(it.payload) + 8*len(it.code)
	for _, v := range it.vectors {
		n += 4 * (len(v.Index) + len(v.Value))
	}
	for _, l := range it.labels {
		n += 16 + len(l)
	}
	for _, f := range it.fields {
		s, _ := f.Value.(string)
		n += 16 + len(s)
	}
	return n
}

// over returns the item old with what is given in it replaced. Either may have been
// checked before modalities were added.
func (it *checked) over(old *checked) *checked {
	out := *old
	out.key = it.key
	if it.vectors != nil {
		out.vectors = make([]model.Vector, max(len(old.vectors), len(it.vectors)))
		copy(out.vectors, old.vectors)
		for t, x := range it.vectors {
			if x.Present() {
				out.vectors[t] = x
			}
		}
	}
	if it.code != nil {
		out.code = it.code
	}
	if it.labels != nil {
		out.labels = it.labels
	}
	if it.payload != nil {
		out.payload = it.payload
	}
	if it.fields != nil {
		out.fields = slices.Clone(it.fields)
		for _, f := range old.fields {
			if !slices.ContainsFunc(it.fields, func(n codec.Field) bool { return n.ID == f.ID }) {
				out.fields = append(out.fields, f)
			}
		}
		slices.SortFunc(out.fields, func(a, b codec.Field) int { return int(a.ID) - int(b.ID) })
	}
	return &out
}

// shortened returns the start of a text that may be of any length, for a message.
func shortened(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}

func checkKey(key string) error {
	if len(key) > MaxKeyBytes || !utf8.ValidString(key) {
		return fault.Invalid("key %q: 1 to %d bytes of UTF-8 are possible", shortened(key), MaxKeyBytes)
	}
	return nil
}

// checkWholeKey is checkKey where an item must have a key.
func checkWholeKey(key string) error {
	if key == "" {
		return fault.Invalid("key \"\": 1 to %d bytes of UTF-8 are possible", MaxKeyBytes)
	}
	return checkKey(key)
}

func checkLabel(l string) error {
	if l == "" || len(l) > MaxLabelBytes || !utf8.ValidString(l) {
		return fault.Invalid("label %q: 1 to %d bytes of UTF-8 are possible", shortened(l), MaxLabelBytes)
	}
	return nil
}

// check brings an item into the terms of the collection. A partial one, for
// Merge, need not have a code.
func (d *descriptor) check(it *Item, partial bool) (*checked, error) {
	c, err := d.look(it, partial)
	if err != nil {
		return nil, err
	}
	for t, v := range c.vectors {
		c.vectors[t] = cloneVector(v)
	}
	c.payload = slices.Clone(c.payload)
	return c, nil
}

// isEmpty reports whether the item has nothing in it, whatever its key and code are.
func (it *Item) isEmpty() bool {
	return len(it.Vectors)+len(it.Sparse)+len(it.Labels)+len(it.Fields)+len(it.Payload) == 0
}

// look is check for whoever needs it only as long as the item stays as it is, whose vectors
// and payload it shares.
func (d *descriptor) look(it *Item, partial bool) (*checked, error) {
	if err := checkKey(it.Key); err != nil {
		return nil, err
	}
	if it.Key == "" && it.isEmpty() && !(d.codesOnly() && len(it.Code) > 0) {
		return nil, fault.Invalid("the item has nothing in it, nor a key")
	}
	c := &checked{key: it.Key}
	fail := func(err error) (*checked, error) {
		return nil, fault.OfItem(it.Key, err)
	}
	if len(it.Vectors)+len(it.Sparse) > 0 {
		c.vectors = make([]model.Vector, len(d.Modalities))
	}
	add := func(name string, dense []float32, sparse *Sparse) error {
		t, err := d.modality(name)
		if err != nil {
			return err
		}
		if c.vectors[t].Present() {
			return fault.Invalid("modality %q: there is a dense and a sparse vector of it", name)
		}
		v, err := d.vector(t, dense, sparse)
		c.vectors[t] = v
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
	case !d.codesOnly():
	case it.Code == nil && partial:
	case len(it.Code) != codec.Bytes(d.Bits):
		return fail(fault.Invalid("code of %d bytes, collection %q has codes of %d (%d bits)",
			len(it.Code), d.Name, codec.Bytes(d.Bits), d.Bits))
	default:
		c.code = codec.NewCode(d.Bits)
		c.code.SetBytes(it.Code)
	}
	if it.Labels != nil {
		c.labels = []string{} // empty and not nil: to be taken away by Merge
	}
	if len(it.Labels) > MaxLabels {
		return fail(fault.Invalid("%d labels, at most %d are possible", len(it.Labels), MaxLabels))
	}
	for _, l := range it.Labels {
		if err := checkLabel(l); err != nil {
			return fail(err)
		}
		if !slices.Contains(c.labels, l) {
			c.labels = append(c.labels, l)
		}
	}
	for name, v := range it.Fields {
		i, err := d.field(name)
		if err != nil {
			return fail(err)
		}
		if v, err = d.Fields[i].checkValue(v); err != nil {
			return fail(err)
		}
		c.fields = append(c.fields, codec.Field{ID: uint32(i), Value: v})
	}
	slices.SortFunc(c.fields, func(a, b codec.Field) int { return int(a.ID) - int(b.ID) })
	if len(it.Payload) > MaxPayloadBytes {
		return fail(fault.Invalid("payload of %d bytes, at most %d are possible", len(it.Payload), MaxPayloadBytes))
	}
	c.payload = it.Payload
	return c, nil
}

func (f *Field) checkValue(v any) (any, error) {
	ok := false
	switch x := v.(type) {
	case string:
		ok = f.Type == String
		if ok && (len(x) > MaxFieldBytes || !utf8.ValidString(x)) {
			return nil, fault.Invalid("field %q: a string has at most %d bytes of UTF-8", f.Name, MaxFieldBytes)
		}
		if ok && f.Indexed && len(x) > MaxIndexedBytes {
			return nil, fault.Invalid("field %q is indexed: a string in it has at most %d bytes, this one has %d", f.Name, MaxIndexedBytes, len(x))
		}
	case int64:
		ok = f.Type == Int
	case int:
		v, ok = int64(x), f.Type == Int
	case float64:
		ok = f.Type == Float
		if ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return nil, fault.Invalid("field %q: %g is no value", f.Name, x)
		}
	case bool:
		ok = f.Type == Bool
	}
	if !ok {
		return nil, fault.Invalid("field %q is of type %s, its value is %v of type %T", f.Name, f.Type, v, v)
	}
	return v, nil
}
