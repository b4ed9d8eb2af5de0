package verify

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A fieldVerifier compares the sets of rows of indexed fields with items, which come in
// order of rows: it takes each row out of the sets that it has to be in, one container
// after the other, and what is left should not be there.
type fieldVerifier struct {
	c         *collectionVerifier
	container int // -1: none yet
	sets      []map[string]*roaring.Bitmap
}

func newFieldVerifier(c *collectionVerifier) *fieldVerifier {
	return &fieldVerifier{c: c, container: -1, sets: make([]map[string]*roaring.Bitmap, len(c.Fields))}
}

// begin makes ready for an item in a row.
func (f *fieldVerifier) begin(row uint32) {
	if container := int(row >> 16); container != f.container {
		f.finish()
		f.load(f.container+1, container, false)
		f.load(container, container+1, true)
		f.container = container
	}
}

// end looks at what is left, and at the containers behind the last item.
func (f *fieldVerifier) end() {
	f.finish()
	f.load(f.container+1, math.MaxUint16+1, false)
	for i := range f.c.Fields {
		if !f.c.Fields[i].Indexed {
			f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(i), 0, ""), f.afterField(i), f.c.about("indexed fields"), func(key, _ []byte) {
				f.c.bad(f.name(i, string(key[9:])), key, "the field is not indexed")
			})
		}
	}
	all := codec.CollectionKey(codec.KindFieldRows, f.c.ID)
	f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(len(f.sets)), 0, ""), codec.PrefixEnd(all), f.c.about("indexed fields"), func(key, _ []byte) {
		field, _, _ := codec.FieldRowsKeyParts(key)
		f.c.bad(fmt.Sprintf("rows of field %d", field), key, "there is no such field")
	})
}

func (f *fieldVerifier) afterField(i int) []byte {
	return codec.PrefixEnd(codec.FieldRowsKey(f.c.ID, uint16(i), 0, "")[:7])
}

// load reads the sets of containers from one up to and without another. There are items
// in the container, one, that is to be kept, and none in others.
func (f *fieldVerifier) load(from, to int, keep bool) {
	if from >= to {
		return
	}
	for i, field := range f.c.Fields {
		f.sets[i] = map[string]*roaring.Bitmap{}
		if !field.Indexed {
			continue
		}
		end := f.afterField(i)
		if to <= math.MaxUint16 {
			end = codec.FieldRowsKey(f.c.ID, uint16(i), uint16(to), "")
		}
		f.c.walk(codec.FieldRowsKey(f.c.ID, uint16(i), uint16(from), ""), end, f.c.about("indexed fields"), func(key, value []byte) {
			_, container, of := codec.FieldRowsKeyParts(key)
			name := f.name(i, string(of))
			if field.Type != record.String && (len(of) != 1 || of[0] >= codec.SliceCount) {
				f.c.bad(name, key, "there is no such slice")
				return
			}
			l, err := codec.DecodeLayer(value)
			switch {
			case err != nil:
				f.c.bad(name, key, "%s", fault.Problem(err))
				f.c.lose(key)
			case !keep:
				f.strays(i, string(of), l.Added, container)
			default:
				f.sets[i][string(of)] = l.Added
			}
		})
	}
}

// item takes the row of an item out of the sets that it belongs to.
func (f *fieldVerifier) item(row uint32, t record.Terms) {
	for _, x := range t.Texts {
		if !f.take(int(x.Field), row, x.Text) {
			f.c.bad(f.name(int(x.Field), x.Text), f.key(int(x.Field), row, x.Text), "row %d is not in it, and its item says so", row)
		}
	}
	for _, x := range t.Numbers {
		var not []byte // slices
		take := func(slice byte) {
			if !f.take(int(x.Field), row, string([]byte{slice})) {
				not = append(not, slice)
			}
		}
		take(codec.SliceExists)
		for image := x.Image; image != 0; image &= image - 1 {
			take(codec.SliceOf(bits.TrailingZeros64(image)))
		}
		if len(not) > 0 {
			f.c.bad(f.name(int(x.Field), ""), f.key(int(x.Field), row, string(not[:1])), "row %d is not in slices %x, and its item says so", row, not)
		}
	}
}

// take takes a row out of a set, and reports whether it was there, or may have been.
func (f *fieldVerifier) take(field int, row uint32, value string) bool {
	rows := f.sets[field][value]
	return rows != nil && rows.CheckedRemove(row&0xffff) || f.c.lost(f.key(field, row, value))
}

func (f *fieldVerifier) key(field int, row uint32, value string) []byte {
	return codec.FieldRowsKey(f.c.ID, uint16(field), uint16(row>>16), value)
}

// finish reports what is left in the sets of the container.
func (f *fieldVerifier) finish() {
	for i, sets := range f.sets {
		if values := slices.Sorted(maps.Keys(sets)); f.c.Fields[i].Type == record.String {
			for _, value := range values {
				f.strays(i, value, sets[value], uint16(f.container))
			}
		} else {
			f.straySlices(i, values)
		}
		f.sets[i] = nil
	}
}

// strays reports the rows of a set that should not be in it, if their items can be read.
func (f *fieldVerifier) strays(field int, value string, low *roaring.Bitmap, container uint16) {
	for it := low.Iterator(); it.HasNext() && f.c.err == nil; {
		if row := uint32(container)<<16 | it.Next(); !f.c.untold(row) {
			f.c.bad(f.name(field, value), f.key(field, row, value), "row %d is in it, and its item does not say so", row)
		}
	}
}

// straySlices does it for the slices of a field, all of a row together.
func (f *fieldVerifier) straySlices(field int, values []string) {
	rows := roaring.New()
	for _, value := range values {
		rows.Or(f.sets[field][value])
	}
	for it := rows.Iterator(); it.HasNext() && f.c.err == nil; {
		low := it.Next()
		row := uint32(f.container)<<16 | low
		if f.c.untold(row) {
			continue
		}
		var in []byte
		for _, value := range values {
			if f.sets[field][value].Contains(low) {
				in = append(in, value...)
			}
		}
		f.c.bad(f.name(field, ""), f.key(field, row, string(in[:1])), "row %d is in slices %x, and its item does not say so", row, in)
	}
}

// name says what a set is.
func (f *fieldVerifier) name(field int, value string) string {
	switch d := f.c.Fields[field]; {
	case d.Type == record.String:
		return fmt.Sprintf("rows whose field %q is %q", d.Name, value)
	case value == "":
		return fmt.Sprintf("rows by field %q", d.Name)
	default:
		return fmt.Sprintf("rows by field %q, slice %x", d.Name, value)
	}
}
