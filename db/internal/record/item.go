package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/words"
	"github.com/fddhdb/fddhdb/internal/instant"
	"github.com/fddhdb/fddhdb/model"
)

// An Item is an item in the terms of its collection: names are resolved to positions, values are checked,
// vectors have the form of their modality. Package db makes it of a db.Item, and clones the parts that the
// caller could change meanwhile. From then on it does not change, except for an automatic key, and may be
// shared and kept.
//
// In a merge nil means "not given", so the stored part stays; an empty list of labels or an empty payload
// that is not nil deletes the stored part.
type Item struct {
	Key string // "": the committer gives it the next automatic one, see state.Request
	// by modality; the zero Vector: none. Nil, or shorter than the modalities: none there
	Vectors []model.Vector
	Code    codec.Code    // in a codes-only collection; nil: none given
	Labels  []string      // distinct, in any order
	Fields  []codec.Field // ascending by ID, each once
	Payload []byte
}

// ItemBytes is about the size of an item in a batch besides its contents: keys and the ends of records.
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

// Over returns the result of merging it into old: old, with the given vectors, code, labels, fields and
// payload replaced. Vectors are replaced modality by modality, fields field by field, labels as a whole. The
// result aliases both, and neither is changed. Either may have been checked before modalities were added, and
// so have fewer vectors.
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
		return a.Present() == b.Present() && slices.Equal(a.Index, b.Index) &&
			slices.EqualFunc(a.Value, b.Value, bits)
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

// CheckValue checks a value that a user gives for the field, and returns its stored form: an int64 for a
// field of ints, a float64 for a field of floats, from any type of number. A field of floats takes whole
// numbers too, but a field of ints takes only whole numbers: an import reads files by the same rule. A field
// of times takes a time.Time, or its text (instant.Parse). A wrong type, a float that is no number, a time
// without a text in RFC 3339, or a string that is too long is an ErrInvalid.
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
			return nil, fault.Invalid("field %q: a string has at most %d bytes of UTF-8", f.Name,
				MaxFieldBytes)
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
		return nil, fault.Invalid("field %q is of type %s, its value is %v of type %T", f.Name, f.Type, given,
			given)
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
		return nil, fault.Invalid("field %q is of type time, and %s %w", f.Name, Shortened(fmt.Sprint(given)),
			err)
	}
	return codec.Time(micros), nil
}

// noValue returns the error of a nil value.
func (f *Field) noValue() error {
	return fault.Invalid("field %q has the value nil: leave it out of an item that has none", f.Name)
}

// numberOf returns a number of any Go type as an int64 or a float64. Other values it returns unchanged, even
// whole numbers above the range of int64.
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
			return fmt.Errorf("field %q is of type %s, its value of type %s", d.Fields[f.ID].Name,
				d.Fields[f.ID].Type, typ)
		}
	}
	return nil
}

// Get returns a copy of a value; nil and no error where there is none. An empty value is not
// nil. The error is Pebble's: the caller, who knows which record it is, words it with
// fault.ReadError.
func Get(r pebble.Reader, key []byte) ([]byte, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, len(value)), value...)
	return b, closer.Close()
}

// ErrStopped is returned by f to end a walk, such as ForEach, early. The walk returns it unchanged; the
// caller takes it for success.
var ErrStopped = errors.New("stopped")

// ForEach calls f with every key that starts with prefix and its value, in order of keys. Both
// are memory of the iterator, valid until f returns. Each key has passed codec.CheckKey, so
// that f may take it apart. An error of f ends the iteration and is returned as it is.
func ForEach(r pebble.Reader, prefix []byte, f func(key, value []byte) error) error {
	return ForEachIn(r, prefix, codec.PrefixEnd(prefix), f)
}

// ForEachIn is ForEach for the keys from lo up to, but without, hi; a nil hi is the end of the
// store.
func ForEachIn(r pebble.Reader, lo, hi []byte, f func(key, value []byte) error) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fault.ReadError(err, "keys %x", lo)
	}
	// f may be the body of a caller's loop. If it panics the database must still close.
	defer func() {
		// Close repeats the error that ended the iteration, if one did.
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "keys %x", lo)
		}
	}()
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if err = codec.CheckKey(it.Key()); err != nil {
			err = fault.Corrupt(err, "key")
		} else if value, err = it.ValueAndErr(); err != nil {
			err = fault.ReadError(err, "key %x", it.Key())
		} else {
			err = f(it.Key(), value)
		}
	}
	return err
}

// ForEachEntry calls f with every entry of the blocks under prefix, and with its number: a row or a code
// number, block * codec.BlockRows + offset. Numbers ascend as long as prefix selects one kind of one space.
// The entry is valid until f returns.
func ForEachEntry(r pebble.Reader, prefix []byte, f func(n uint32, entry []byte) error) error {
	return ForEachEntryIn(r, prefix, codec.PrefixEnd(prefix), f)
}

// ForEachEntryIn is ForEachEntry for the blocks with keys from lo up to, but without, hi.
func ForEachEntryIn(r pebble.Reader, lo, hi []byte, f func(n uint32, entry []byte) error) error {
	return ForEachIn(r, lo, hi, func(key, value []byte) error {
		b, err := codec.DecodeBlock(value)
		if err != nil {
			return fault.Corrupt(err, "block %x", key)
		}
		base := codec.LastNumber(key) * codec.BlockRows
		for i := range b.Len() {
			if err := f(base+uint32(b.Offset(i)), b.Entry(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Terms are the keys that filters find a row by: the stored sets of rows that contain it. To replace or
// delete an item the committer needs its old terms, because each set has to lose the row (state.Tx.index).
type Terms struct {
	Labels  []uint32 // ids, ascending: a set of rows for each
	Texts   []Text   // of indexed fields of strings, ascending: a set of rows for each value
	Numbers []Number // of other indexed fields, ascending: bit-sliced sets, see codec/sets.go
	Words   []Text   // of fields with Words, ascending: a set of rows for each term (package words)
}

// A Text is the value of an indexed field of strings, or a term of such a value.
type Text struct {
	Field uint16 // position in the collection
	Text  string
}

// A Number is the value of an indexed field of integers, floats, booleans or times.
type Number struct {
	Field uint16 // position in the collection
	Image uint64 // see Sliced: 64 bits in the order of the values
}

// Compare orders by field, then by text.
func (a Text) Compare(b Text) int {
	if a.Field != b.Field {
		return cmp.Compare(a.Field, b.Field)
	}
	return strings.Compare(a.Text, b.Text)
}

// Compare orders by field alone, as an item has one value of each: so Differences sees a value
// that has changed as one in both lists.
func (a Number) Compare(b Number) int { return cmp.Compare(a.Field, b.Field) }

// Terms returns the terms of an item with these labels (ids) and fields, both ascending.
// Labels are aliased. The error is about values that no item of the collection can have; where
// the item was stored, the caller words it as damage.
func (d *Descriptor) Terms(labels []uint32, fields []codec.Field) (Terms, error) {
	out := Terms{Labels: labels}
	for _, f := range fields {
		if int(f.ID) >= len(d.Fields) {
			return out, fmt.Errorf("field %d of %d", f.ID, len(d.Fields))
		}
		field := &d.Fields[f.ID]
		if !field.Indexed && !field.Words {
			continue
		}
		if typ := TypeOf(f.Value); typ != field.Type {
			return out, fmt.Errorf("field %q is of type %s, its value of type %s", field.Name, field.Type,
				typ)
		}
		if image, is := Sliced(f.Value); is {
			out.Numbers = append(out.Numbers, Number{uint16(f.ID), image})
			continue
		}
		v := f.Value.(string)
		if field.Words {
			for _, term := range words.Terms(v) {
				out.Words = append(out.Words, Text{uint16(f.ID), term})
			}
		}
		if !field.Indexed {
			continue
		}
		if len(v) > MaxIndexedBytes {
			return out, fmt.Errorf("field %q is indexed, and its string has %d bytes", field.Name, len(v))
		}
		out.Texts = append(out.Texts, Text{uint16(f.ID), v})
	}
	return out, nil
}

// CheckIndexed returns an ErrInvalid if a string is longer than an index takes. Fields of items are
// checked when they come (Field.CheckValue), but they may have come before the field was indexed.
func (d *Descriptor) CheckIndexed(fields []codec.Field) error {
	for _, f := range fields {
		if s, is := f.Value.(string); is && len(s) > MaxIndexedBytes && int(f.ID) < len(d.Fields) &&
			d.Fields[f.ID].Indexed {
			return tooLongForIndex(d.Fields[f.ID].Name, s)
		}
	}
	return nil
}

func tooLongForIndex(field, s string) error {
	return fault.Invalid("field %q is indexed: a string in it has at most %d bytes, this one has %d", field,
		MaxIndexedBytes, len(s))
}

// termBytes estimates the size in a batch of a change to a term of an indexed field, without its text.
const termBytes = 64

// wordBytes is termBytes of a term of a text. A text has about as many as it has bytes.
const wordBytes = 40

// Bytes estimates the size in a batch of putting a row into the sets of its terms, or of taking it out.
func (x *Terms) Bytes() int {
	n := 16*len(x.Labels) + termBytes*(len(x.Texts)+len(x.Numbers)) + wordBytes*len(x.Words)
	for _, v := range x.Texts {
		n += len(v.Text)
	}
	return n
}

// TermBytes is Terms.Bytes for an item, without its labels, which Item.Bytes has counted.
func (d *Descriptor) TermBytes(it *Item) int {
	n := 0
	for _, f := range it.Fields {
		s, _ := f.Value.(string)
		if d.Fields[f.ID].Indexed {
			n += termBytes + len(s)
		}
		if d.Fields[f.ID].Words {
			n += wordBytes * min(len(s), words.MaxBytes)
		}
	}
	return n
}

// Differences walks over two lists that ascend by order. It calls one with each element that
// is in one list only, where in says whether that is after, and both, unless nil, with each
// pair that order takes for equal. The sets of rows of an item are changed by no more than
// this.
func Differences[T any](before, after []T, order func(a, b T) int, one func(x T, in bool),
	both func(old, new T)) {
	for len(before) > 0 || len(after) > 0 {
		c := 0
		switch {
		case len(after) == 0:
			c = -1
		case len(before) == 0:
			c = 1
		default:
			c = order(before[0], after[0])
		}
		switch {
		case c < 0:
			one(before[0], false)
			before = before[1:]
		case c > 0:
			one(after[0], true)
			after = after[1:]
		default:
			if both != nil {
				both(before[0], after[0])
			}
			before, after = before[1:], after[1:]
		}
	}
}
