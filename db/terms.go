package db

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
)

// terms are what a row is found by: the sets that it is in.
type terms struct {
	labels  []uint32      // ids, ascending
	texts   []textValue   // of indexed fields of strings, ascending
	numbers []numberValue // of other indexed fields, ascending
}

type textValue struct {
	field uint16
	text  string
}

type numberValue struct {
	field uint16
	image uint64
}

func (a textValue) compare(b textValue) int {
	if a.field != b.field {
		return cmp.Compare(a.field, b.field)
	}
	return strings.Compare(a.text, b.text)
}

func (a numberValue) compare(b numberValue) int { return cmp.Compare(a.field, b.field) }

// terms returns those of an item with these labels and fields, both ascending. The
// error is about values that no item of the collection can have.
func (d *descriptor) terms(labels []uint32, fields []codec.Field) (terms, error) {
	out := terms{labels: labels}
	for _, f := range fields {
		if int(f.ID) >= len(d.Fields) {
			return out, fmt.Errorf("field %d of %d", f.ID, len(d.Fields))
		}
		field := &d.Fields[f.ID]
		if !field.Indexed {
			continue
		}
		number := numberValue{field: uint16(f.ID)}
		typ := field.Type
		switch v := f.Value.(type) {
		case string:
			typ = stringField
			out.texts = append(out.texts, textValue{uint16(f.ID), v})
		case int64:
			typ, number.image = intField, codec.IntImage(v)
		case float64:
			typ, number.image = floatField, codec.FloatImage(v)
		case bool:
			typ, number.image = boolField, codec.BoolImage(v)
		}
		if typ != field.Type {
			return out, fmt.Errorf("field %q is of type %s, its value of type %s", field.Name, field.Type, typ)
		}
		if typ != stringField {
			out.numbers = append(out.numbers, number)
		}
	}
	return out, nil
}

// termBytes estimates what a change to a term of an indexed field takes in a batch,
// besides its text.
const termBytes = 64

// bytes estimates what it takes in a batch to put a row into the sets of its terms,
// or to take it out.
func (x *terms) bytes() int {
	n := 16*len(x.labels) + termBytes*(len(x.texts)+len(x.numbers))
	for _, v := range x.texts {
		n += len(v.text)
	}
	return n
}

// termBytes estimates the same for an item; its labels it counts itself.
func (d *descriptor) termBytes(it *checked) int {
	n := 0
	for _, f := range it.fields {
		if d.Fields[f.ID].Indexed {
			s, _ := f.Value.(string)
			n += termBytes + len(s)
		}
	}
	return n
}

// compare walks over two ascending lists: it calls one with what is only in before
// or, with in, only in after, and both with what is in both.
func compare[T any](before, after []T, order func(a, b T) int, one func(x T, in bool), both func(old, new T)) {
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
