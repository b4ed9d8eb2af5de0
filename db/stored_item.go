package db

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

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

// equal reports whether two items are the same, but for their keys and the order of their
// labels, bit for bit.
func (it *checked) equal(other *checked) bool {
	sorted := func(labels []string) []string { return slices.Sorted(slices.Values(labels)) }
	bits := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	same := func(a, b model.Vector) bool {
		return a.Present() == b.Present() && slices.Equal(a.Index, b.Index) && slices.EqualFunc(a.Value, b.Value, bits)
	}
	for t := range max(len(it.vectors), len(other.vectors)) {
		if !same(it.vector(t), other.vector(t)) {
			return false
		}
	}
	return slices.Equal(it.code, other.code) && slices.Equal(sorted(it.labels), sorted(other.labels)) &&
		slices.EqualFunc(it.fields, other.fields, sameField) && bytes.Equal(it.payload, other.payload)
}

// vector returns the vector of a modality, the zero Vector where it is absent, or was
// added to the collection after the item was checked.
func (it *checked) vector(t int) model.Vector {
	if t < len(it.vectors) {
		return it.vectors[t]
	}
	return model.Vector{}
}

func sameField(a, b codec.Field) bool {
	x, ok := a.Value.(float64)
	if !ok {
		return a == b
	}
	y, ok := b.Value.(float64)
	return ok && a.ID == b.ID && math.Float64bits(x) == math.Float64bits(y)
}

// isPlain reports whether there is nothing but key and code.
func (it *checked) isPlain() bool {
	return it.vectors == nil && len(it.labels)+len(it.fields)+len(it.payload) == 0
}

// clone returns a copy that shares nothing that may change.
func (it *checked) clone() *checked {
	own := *it
	own.vectors = slices.Clone(it.vectors)
	for t, x := range own.vectors {
		own.vectors[t] = cloneVector(x)
	}
	own.code, own.payload = slices.Clone(it.code), slices.Clone(it.payload)
	own.labels, own.fields = slices.Clone(it.labels), slices.Clone(it.fields)
	return &own
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

func (f *field) checkValue(v any) (any, error) {
	ok := false
	switch x := v.(type) {
	case string:
		ok = f.Type == stringField
		if ok && (len(x) > MaxFieldBytes || !utf8.ValidString(x)) {
			return nil, fault.Invalid("field %q: a string has at most %d bytes of UTF-8", f.Name, MaxFieldBytes)
		}
		if ok && f.Indexed && len(x) > MaxIndexedBytes {
			return nil, fault.Invalid("field %q is indexed: a string in it has at most %d bytes, this one has %d", f.Name, MaxIndexedBytes, len(x))
		}
	case int64:
		ok = f.Type == intField
	case int:
		v, ok = int64(x), f.Type == intField
	case float64:
		ok = f.Type == floatField
		if ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return nil, fault.Invalid("field %q: %g is no value", f.Name, x)
		}
	case bool:
		ok = f.Type == boolField
	}
	if !ok {
		return nil, fault.Invalid("field %q is of type %s, its value is %v of type %T", f.Name, f.Type, v, v)
	}
	return v, nil
}
