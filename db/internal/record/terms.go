package record

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
)

// Terms are what a row is found by: the sets that it is in.
type Terms struct {
	Labels  []uint32 // ids, ascending
	Texts   []Text   // of indexed fields of strings, ascending
	Numbers []Number // of other indexed fields, ascending
}

type Text struct {
	Field uint16
	Text  string
}

type Number struct {
	Field uint16
	Image uint64
}

func (a Text) Compare(b Text) int {
	if a.Field != b.Field {
		return cmp.Compare(a.Field, b.Field)
	}
	return strings.Compare(a.Text, b.Text)
}

func (a Number) Compare(b Number) int { return cmp.Compare(a.Field, b.Field) }

// Terms returns those of an item with these labels and fields, both ascending. The
// error is about values that no item of the collection can have.
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
		number := Number{Field: uint16(f.ID)}
		typ := field.Type
		switch v := f.Value.(type) {
		case string:
			typ = String
			out.Texts = append(out.Texts, Text{uint16(f.ID), v})
		case int64:
			typ, number.Image = Int, codec.IntImage(v)
		case float64:
			typ, number.Image = Float, codec.FloatImage(v)
		case bool:
			typ, number.Image = Bool, codec.BoolImage(v)
		}
		if typ != field.Type {
			return out, fmt.Errorf("field %q is of type %s, its value of type %s", field.Name, field.Type, typ)
		}
		if typ != String {
			out.Numbers = append(out.Numbers, number)
		}
	}
	return out, nil
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

// TermBytes estimates the same for an item; its labels it counts itself.
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

// Differences walks over two ascending lists: it calls one with what is only in before
// or, with in, only in after, and both with what is in both.
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
