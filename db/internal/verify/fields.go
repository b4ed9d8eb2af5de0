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

// A fieldVerifier compares the sets of rows of indexed fields with items, which checkItems
// hands on in order of rows. For one container of 65,536 rows after the other it reads the
// sets of all fields, takes each row out of the sets that its item has to be in, and reports
// the rows that are left. So it holds the sets of one container. Calls come in this order:
// begin and perhaps item for each row, then end.
type fieldVerifier struct {
	c         *collectionVerifier
	container int // of the rows that are looked at; -1: none yet

	// sets has, by field and then by value or slice as in codec.FieldRowsKey, the rows of the
	// container, as low 16 bits, that no item has accounted for yet. A map is nil for fields
	// before the first container, and empty for those that are not indexed.
	sets []map[string]*roaring.Bitmap
}

// newFieldVerifier returns a verifier before its first row.
func newFieldVerifier(c *collectionVerifier) *fieldVerifier {
	return &fieldVerifier{c: c, container: -1, sets: make([]map[string]*roaring.Bitmap, len(c.Fields))}
}

// begin comes before the item of a row, also if it cannot be decoded. At the first row of a
// container it finishes the container before, reports the sets of containers in between,
// which have no items, and reads those of this one.
func (f *fieldVerifier) begin(row uint32) {
	if container := int(row >> 16); container != f.container {
		f.finish()
		f.load(f.container+1, container, false)
		f.load(container, container+1, true)
		f.container = container
	}
}

// end finishes the last container, reports sets of containers behind it, and sets of fields
// that are not indexed or do not exist.
func (f *fieldVerifier) end() {
	f.finish()
	f.load(f.container+1, math.MaxUint16+1, false)
	for i := range f.c.Fields {
		if field := f.c.Fields[i]; !field.Indexed && !field.Indexing { // what there is of an index that is being made means nothing
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

// afterField returns the first key behind all sets of a field.
func (f *fieldVerifier) afterField(i int) []byte {
	return codec.PrefixEnd(codec.FieldPrefix(f.c.ID, uint16(i)))
}

// load reads the sets of the containers from from to to-1. If keep is set that is one
// container, with items, and its sets are kept for them. Otherwise there are no items, and
// all rows in the sets are reported.
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
			// No item has a row in this container, so each row in the set is one too many.
			case !keep:
				f.strays(i, string(of), l.Added, container)
			default:
				f.sets[i][string(of)] = l.Added
			}
		})
	}
}

// item takes the row of an item out of the sets that its terms put it into, and reports those
// in which it is not.
func (f *fieldVerifier) item(row uint32, t record.Terms) {
	for _, x := range t.Texts {
		if !f.take(int(x.Field), row, x.Text) {
			f.c.bad(f.name(int(x.Field), x.Text), f.key(int(x.Field), row, x.Text), "row %d is not in it, and its item says so", row)
		}
	}
	// A number is in slice 0, which says that there is one, and in the slice of each bit of its
	// image that is set (codec/slices.go).
	for _, x := range t.Numbers {
		var not []byte // slices in which it is not
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

// take takes a row out of a set, and reports whether it was there, or may have been as the set
// could not be read.
func (f *fieldVerifier) take(field int, row uint32, value string) bool {
	rows := f.sets[field][value]
	return rows != nil && rows.CheckedRemove(row&0xffff) || f.c.lost(f.key(field, row, value))
}

// key returns the key of the set of a value, or slice, in the container of a row.
func (f *fieldVerifier) key(field int, row uint32, value string) []byte {
	return codec.FieldRowsKey(f.c.ID, uint16(field), uint16(row>>16), value)
}

// finish reports the rows that are left in the sets of the container, and forgets the sets.
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

// strays reports rows of a set in which their items do not say they are. low has the low 16
// bits of the rows.
func (f *fieldVerifier) strays(field int, value string, low *roaring.Bitmap, container uint16) {
	for it := low.Iterator(); it.HasNext() && f.c.err == nil; {
		if row := uint32(container)<<16 | it.Next(); !f.c.untold(row) {
			f.c.bad(f.name(field, value), f.key(field, row, value), "row %d is in it, and its item does not say so", row)
		}
	}
}

// straySlices is strays for the slices of a field in the current container, with one finding
// for all slices of a row. values are the keys of its sets, sorted.
func (f *fieldVerifier) straySlices(field int, values []string) {
	// One finding for each row. A number is in up to 65 slices, which would be as many findings.
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

// name names a set in findings; "" as a value means all slices of a field.
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
