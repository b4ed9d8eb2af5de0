package mih

import (
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxList is the number of rows up to which they are kept as a sorted slice. A
// bitmap of so few scattered rows would take several times the 4 bytes a row.
const maxList = 64

// Rows is the set of rows that carry one code: one row is held in the value
// itself, up to 64 in a slice, more in a roaring bitmap. The zero value is the
// empty set. Values taken from a published Table never change.
type Rows struct {
	n     uint32
	first uint32    // the row where n = 1
	many  *manyRows // where n > 1
}

type manyRows struct {
	list   []uint32 // ascending; nil where bitmap is used
	bitmap *roaring.Bitmap
}

// Len returns the number of rows.
func (r Rows) Len() int { return int(r.n) }

// All yields the rows in ascending order.
func (r Rows) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		switch {
		case r.n == 0:
		case r.n == 1:
			yield(r.first)
		case r.many.bitmap == nil:
			for _, row := range r.many.list {
				if !yield(row) {
					return
				}
			}
		default:
			it := r.many.bitmap.Iterator()
			for it.HasNext() {
				if !yield(it.Next()) {
					return
				}
			}
		}
	}
}

// AppendTo appends, in ascending order, the rows that are in filter; a nil
// filter holds all rows.
func (r Rows) AppendTo(dst []uint32, filter *roaring.Bitmap) []uint32 {
	if r.n > 1 && r.many.bitmap != nil {
		b := r.many.bitmap
		if filter != nil {
			b = roaring.And(b, filter)
		}
		dst = slices.Grow(dst, int(b.GetCardinality()))
		it := b.ManyIterator()
		for {
			n := it.NextMany(dst[len(dst):cap(dst)])
			dst = dst[:len(dst)+n]
			if n == 0 || len(dst) == cap(dst) {
				return dst
			}
		}
	}
	for row := range r.All() {
		if filter == nil || filter.Contains(row) {
			dst = append(dst, row)
		}
	}
	return dst
}

// LenIn returns the number of rows that are in filter; nil holds all rows.
func (r Rows) LenIn(filter *roaring.Bitmap) int {
	switch {
	case filter == nil:
		return int(r.n)
	case r.n > 1 && r.many.bitmap != nil:
		return int(r.many.bitmap.AndCardinality(filter))
	}
	n := 0
	for row := range r.All() {
		if filter.Contains(row) {
			n++
		}
	}
	return n
}

// Contains reports whether the row is in the set.
func (r Rows) Contains(row uint32) bool {
	switch {
	case r.n == 0:
		return false
	case r.n == 1:
		return r.first == row
	case r.many.bitmap == nil:
		_, ok := slices.BinarySearch(r.many.list, row)
		return ok
	}
	return r.many.bitmap.Contains(row)
}

// add returns the set with row. With owned, r's memory is the caller's alone
// and may be changed; else it is copied.
func (r Rows) add(row uint32, owned bool) Rows {
	if r.Contains(row) {
		return r
	}
	switch {
	case r.n == 0:
		return Rows{n: 1, first: row}
	case r.n == 1:
		list := []uint32{min(r.first, row), max(r.first, row)}
		return Rows{n: 2, many: &manyRows{list: list}}
	case r.many.bitmap != nil:
		b := r.many.bitmap
		if !owned {
			b = b.Clone()
		}
		b.Add(row)
		return Rows{n: r.n + 1, many: &manyRows{bitmap: b}}
	case r.n == maxList:
		b := roaring.BitmapOf(r.many.list...)
		b.Add(row)
		return Rows{n: r.n + 1, many: &manyRows{bitmap: b}}
	}
	list := r.many.list
	if !owned {
		list = append(make([]uint32, 0, len(list)+1), list...)
	}
	at, _ := slices.BinarySearch(list, row)
	return Rows{n: r.n + 1, many: &manyRows{list: slices.Insert(list, at, row)}}
}

// remove returns the set without row; owned as for add.
func (r Rows) remove(row uint32, owned bool) Rows {
	switch {
	case !r.Contains(row):
		return r
	case r.n == 1:
		return Rows{}
	case r.n == 2:
		list := r.many.list
		if list[0] == row {
			return Rows{n: 1, first: list[1]}
		}
		return Rows{n: 1, first: list[0]}
	case r.many.bitmap != nil:
		b := r.many.bitmap
		if !owned {
			b = b.Clone()
		}
		b.Remove(row)
		if r.n-1 == maxList {
			return Rows{n: maxList, many: &manyRows{list: b.ToArray()}}
		}
		return Rows{n: r.n - 1, many: &manyRows{bitmap: b}}
	}
	list := r.many.list
	if !owned {
		list = slices.Clone(list)
	}
	at, _ := slices.BinarySearch(list, row)
	return Rows{n: r.n - 1, many: &manyRows{list: slices.Delete(list, at, at+1)}}
}

// bytes estimates the memory behind the set, in bytes.
func (r Rows) bytes() int {
	switch {
	case r.n <= 1:
		return 0
	case r.many.bitmap == nil:
		return 32 + 4*cap(r.many.list)
	}
	return 32 + int(r.many.bitmap.GetSizeInBytes())
}
