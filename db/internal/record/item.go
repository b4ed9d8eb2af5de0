package record

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/instant"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is an item in the terms of its collection: names are resolved to positions, values
// are checked, vectors have the form of their modality. Package db makes it of a db.Item, and
// clones what the caller could change while it is in use. From then on nothing writes to it,
// but for an automatic key, and it may be shared and kept.
//
// In a merge nil means "not given", so that what is stored stays; an empty list of labels or
// an empty payload that is not nil takes away what is there.
type Item struct {
	Key     string         // "": the committer gives it the next automatic one, see state.Request
	Vectors []model.Vector // by modality; the zero Vector: none. Nil, or shorter than the modalities: none there
	Code    codec.Code     // in a codes-only collection; nil: none given
	Labels  []string       // distinct, in any order
	Fields  []codec.Field  // ascending by ID, each once
	Payload []byte
}

// ItemBytes is what an item takes in a batch, about, besides what it holds: keys and the ends
// of records.
const ItemBytes = 64

// Bytes estimates how many bytes storing the item takes, without its codes and without the
// sets of rows that it enters (Descriptor.TermBytes). Limits on batches and the reserve of
// disk space count by it.
func (it *Item) Bytes() int {
	n := ItemBytes + len(it.Key) + len(it.Payload) + 8*len(it.Code)
	for _, v := range it.Vectors {
		n += 4 * (len(v.Index) + len(v.Value))
	}
	for _, l := range it.Labels {
		n += 16 + len(l)
	}
	for _, f := range it.Fields {
		s, _ := f.Value.(string)
		n += 16 + len(s)
	}
	return n
}

// Over returns what a merge of it into old makes: old, with the vectors, code, labels, fields
// and payload that it gives replaced. Vectors are replaced modality by modality and fields
// field by field, labels as a whole. The result aliases both, and neither is changed. Either
// may have been checked before modalities were added, and so have fewer vectors.
func (it *Item) Over(old *Item) *Item {
	out := *old
	out.Key = it.Key
	if it.Vectors != nil {
		out.Vectors = make([]model.Vector, max(len(old.Vectors), len(it.Vectors)))
		copy(out.Vectors, old.Vectors)
		for t, x := range it.Vectors {
			if x.Present() {
				out.Vectors[t] = x
			}
		}
	}
	if it.Code != nil {
		out.Code = it.Code
	}
	if it.Labels != nil {
		out.Labels = it.Labels
	}
	if it.Payload != nil {
		out.Payload = it.Payload
	}
	if it.Fields != nil {
		out.Fields = slices.Clone(it.Fields)
		for _, f := range old.Fields {
			if !slices.ContainsFunc(it.Fields, func(n codec.Field) bool { return n.ID == f.ID }) {
				out.Fields = append(out.Fields, f)
			}
		}
		slices.SortFunc(out.Fields, func(a, b codec.Field) int { return int(a.ID) - int(b.ID) })
	}
	return &out
}

// Equal reports whether two items are the same, bit for bit, so that 0 and -0 differ. Keys and
// the order of labels do not count, nor whether a list is nil or empty.
func (it *Item) Equal(other *Item) bool {
	sorted := func(labels []string) []string { return slices.Sorted(slices.Values(labels)) }
	bits := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
	same := func(a, b model.Vector) bool {
		return a.Present() == b.Present() && slices.Equal(a.Index, b.Index) && slices.EqualFunc(a.Value, b.Value, bits)
	}
	for t := range max(len(it.Vectors), len(other.Vectors)) {
		if !same(it.Vector(t), other.Vector(t)) {
			return false
		}
	}
	return slices.Equal(it.Code, other.Code) && slices.Equal(sorted(it.Labels), sorted(other.Labels)) &&
		slices.EqualFunc(it.Fields, other.Fields, sameField) && bytes.Equal(it.Payload, other.Payload)
}

// Vector returns the vector of modality t, which aliases the item; the zero Vector where it is
// absent, also because the modality was added to the collection after the item was checked.
func (it *Item) Vector(t int) model.Vector {
	if t < len(it.Vectors) {
		return it.Vectors[t]
	}
	return model.Vector{}
}

// sameField reports whether two fields are the same. Floats are compared bit for bit.
func sameField(a, b codec.Field) bool {
	x, ok := a.Value.(float64)
	if !ok {
		return a == b
	}
	y, ok := b.Value.(float64)
	return ok && a.ID == b.ID && math.Float64bits(x) == math.Float64bits(y)
}

// Shortened returns a text that may be of any length, cut to 40 bytes and "..." for the words
// of an error. It may cut a character in two: print it with %q.
func Shortened(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}

// CheckKey checks the key of an item that is to be put. "" is possible: it asks for an
// automatic key.
func CheckKey(key string) error {
	if len(key) > MaxKeyBytes || !utf8.ValidString(key) {
		return fault.Invalid("key %q: 1 to %d bytes of UTF-8 are possible", Shortened(key), MaxKeyBytes)
	}
	return nil
}

// CheckWholeKey is CheckKey where an item must have a key.
func CheckWholeKey(key string) error {
	if key == "" {
		return fault.Invalid("key \"\": 1 to %d bytes of UTF-8 are possible", MaxKeyBytes)
	}
	return CheckKey(key)
}

// CheckLabel checks one label of an item.
func CheckLabel(l string) error {
	if l == "" || len(l) > MaxLabelBytes || !utf8.ValidString(l) {
		return fault.Invalid("label %q: 1 to %d bytes of UTF-8 are possible", Shortened(l), MaxLabelBytes)
	}
	return nil
}

// CheckValue checks a value that a user gives for the field, and returns it as it is stored: an int64 for a
// field of ints, a float64 for one of floats, whatever type of number it was. A whole number suits a field of
// floats, and no other number one of ints: an import reads files by the same rule. A time.Time, or its text
// (instant.Parse), suits a field of times. A wrong type, a float that is no number, a time that RFC 3339 has
// no text for, or a string that is too long is an ErrInvalid.
func (f *Field) CheckValue(given any) (any, error) {
	v := numberOf(given)
	if x, is := v.(int64); is && f.Type == Float {
		v = float64(x)
	}
	if f.Type == Time {
		return f.checkTime(given)
	}
	ok := false
	switch x := v.(type) {
	case string:
		ok = f.Type == String
		if ok && (len(x) > MaxFieldBytes || !utf8.ValidString(x)) {
			return nil, fault.Invalid("field %q: a string has at most %d bytes of UTF-8", f.Name, MaxFieldBytes)
		}
		if ok && f.Indexed && len(x) > MaxIndexedBytes {
			return nil, tooLongForIndex(f.Name, x)
		}
	case int64:
		ok = f.Type == Int
	case float64:
		ok = f.Type == Float
		if ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return nil, fault.Invalid("field %q: %g is no value", f.Name, x)
		}
	case bool:
		ok = f.Type == Bool
	}
	switch {
	case given == nil:
		return nil, f.noValue()
	case !ok:
		return nil, fault.Invalid("field %q is of type %s, its value is %v of type %T", f.Name, f.Type, given, given)
	}
	return v, nil
}

// checkTime is CheckValue of a field of times.
func (f *Field) checkTime(given any) (any, error) {
	if given == nil {
		return nil, f.noValue()
	}
	micros, err := instant.ValueOf(given)
	if err != nil {
		return nil, fault.Invalid("field %q is of type time, and %s %w", f.Name, Shortened(fmt.Sprint(given)), err)
	}
	return codec.Time(micros), nil
}

// noValue returns the error of a nil value.
func (f *Field) noValue() error {
	return fault.Invalid("field %q has the value nil: leave it out of an item that has none", f.Name)
}

// numberOf returns a number of any Go type as an int64 or a float64, and other values as they
// are, also numbers above those of an int64.
func numberOf(v any) any {
	switch v.(type) {
	case string, int64, float64, bool, nil: // nearly all
		return v
	}
	switch x := reflect.ValueOf(v); {
	case x.CanInt():
		return x.Int()
	case x.CanUint() && x.Uint() <= math.MaxInt64:
		return int64(x.Uint())
	case x.CanFloat():
		return x.Float()
	}
	return v
}

// CheckValues checks that stored values have the types of their fields, but not how long they
// are. The caller words the error as damage.
func (d *Descriptor) CheckValues(fields []codec.Field) error {
	for _, f := range fields {
		if int64(f.ID) >= int64(len(d.Fields)) {
			return fmt.Errorf("field %d of %d", f.ID, len(d.Fields))
		}
		if x, is := f.Value.(float64); is && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return fmt.Errorf("field %q is %g", d.Fields[f.ID].Name, x)
		}
		if typ := TypeOf(f.Value); typ != d.Fields[f.ID].Type {
			return fmt.Errorf("field %q is of type %s, its value of type %s", d.Fields[f.ID].Name, d.Fields[f.ID].Type, typ)
		}
	}
	return nil
}
