package record

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Terms are what filters find a row by: the stored sets of rows that it is in. To replace or
// delete an item the committer needs its old terms, as each set has to lose the row
// (state.Tx.index).
type Terms struct {
	Labels  []uint32 // ids, ascending: a set of rows for each
	Texts   []Text   // of indexed fields of strings, ascending: a set of rows for each value
	Numbers []Number // of other indexed fields, ascending: bit-sliced sets, see codec/slices.go
}

// A Text is the value of an indexed field of strings.
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
		if !field.Indexed {
			continue
		}
		if typ := TypeOf(f.Value); typ != field.Type {
			return out, fmt.Errorf("field %q is of type %s, its value of type %s", field.Name, field.Type, typ)
		}
		if image, is := Sliced(f.Value); is {
			out.Numbers = append(out.Numbers, Number{uint16(f.ID), image})
			continue
		}
		v := f.Value.(string)
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
		if s, is := f.Value.(string); is && len(s) > MaxIndexedBytes && int(f.ID) < len(d.Fields) && d.Fields[f.ID].Indexed {
			return tooLongForIndex(d.Fields[f.ID].Name, s)
		}
	}
	return nil
}

func tooLongForIndex(field, s string) error {
	return fault.Invalid("field %q is indexed: a string in it has at most %d bytes, this one has %d", field, MaxIndexedBytes, len(s))
}

// termBytes estimates what a change to a term of an indexed field takes in a batch,
// besides its text.
const termBytes = 64

// Bytes estimates what it takes in a batch to put a row into the sets of its terms,
// or to take it out.
func (x *Terms) Bytes() int {
	n := 16*len(x.Labels) + termBytes*(len(x.Texts)+len(x.Numbers))
	for _, v := range x.Texts {
		n += len(v.Text)
	}
	return n
}

// TermBytes estimates what Terms.Bytes does, for the terms of an item without its labels, which
// Item.Bytes has counted.
func (d *Descriptor) TermBytes(it *Item) int {
	n := 0
	for _, f := range it.Fields {
		if d.Fields[f.ID].Indexed {
			s, _ := f.Value.(string)
			n += termBytes + len(s)
		}
	}
	return n
}

// Differences walks over two lists that ascend by order. It calls one with each element that
// is in one list only, where in says whether that is after, and both, unless nil, with each
// pair that order takes for equal. The sets of rows of an item are changed by no more than
// this.
func Differences[T any](before, after []T, order func(a, b T) int, one func(x T, in bool), both func(old, new T)) {
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
