package mih

import (
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxList is the largest number of rows kept as a sorted list. A bitmap of so few
// scattered rows would take several times the list's 4 bytes a row.
const maxList = 64

// Rows is the set of rows that carry one code. The zero value is the empty set. Rows of
// a published Table never change.
type Rows struct {
	n      uint32          // number of rows
	one    uint32          // the row, if n = 1
	list   []uint32        // ascending, if 1 < n <= maxList
	bitmap *roaring.Bitmap // if n > maxList
}

// RowsOf returns the set of the given rows, which are ascending and distinct. It keeps
// the slice.
func RowsOf(rows ...uint32) Rows {
	switch n := len(rows); {
	case n == 0:
		return Rows{}
	case n == 1:
		return Rows{n: 1, one: rows[0]}
	case n <= maxList:
		return Rows{n: uint32(n), list: rows}
	default:
		return Rows{n: uint32(n), bitmap: roaring.BitmapOf(rows...)}
	}
}

// Len returns the number of rows.
func (r Rows) Len() int { return int(r.n) }

// All yields the rows in ascending order.
func (r Rows) All() iter.Seq[uint32] { return r.From(0) }

// From yields the rows from first on, in ascending order. Those before cost next to nothing.
func (r Rows) From(first uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		switch {
		case r.n == 0:
		case r.n == 1:
			if r.one >= first {
				yield(r.one)
			}
		case r.bitmap == nil:
			at, _ := slices.BinarySearch(r.list, first)
			for _, row := range r.list[at:] {
				if !yield(row) {
					return
				}
			}
		default:
			it := r.bitmap.Iterator()
			it.AdvanceIfNeeded(first)
			for it.HasNext() {
				if !yield(it.Next()) {
					return
				}
			}
		}
	}
}

// AppendTo appends the rows that are in filter to dst, ascending. A nil filter admits
// all rows.
func (r Rows) AppendTo(dst []uint32, filter *roaring.Bitmap) []uint32 {
	if r.bitmap != nil {
		b := r.bitmap
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

// Parts calls f with the rows that are in filter, ascending, as many at a time as fit in buf,
// which has room for one or more. A nil filter admits all rows. f may keep buf until it
// returns. The first error of f ends it.
func (r Rows) Parts(buf []uint32, filter *roaring.Bitmap, f func(rows []uint32) error) error {
	if r.bitmap == nil {
		part := buf[:0]
		for row := range r.All() {
			if filter != nil && !filter.Contains(row) {
				continue
			}
			if part = append(part, row); len(part) == len(buf) {
				if err := f(part); err != nil {
					return err
				}
				part = part[:0]
			}
		}
		if len(part) == 0 {
			return nil
		}
		return f(part)
	}
	b := r.bitmap
	if filter != nil {
		b = roaring.And(b, filter)
	}
	for it := b.ManyIterator(); ; {
		n := it.NextMany(buf)
		if n == 0 {
			return nil
		}
		if err := f(buf[:n]); err != nil {
			return err
		}
	}
}

// LenIn returns the number of rows that are in filter. A nil filter admits all rows.
func (r Rows) LenIn(filter *roaring.Bitmap) int {
	switch {
	case filter == nil:
		return int(r.n)
	case r.bitmap != nil:
		return int(r.bitmap.AndCardinality(filter))
	}
	n := 0
	for row := range r.All() {
		if filter.Contains(row) {
			n++
		}
	}
	return n
}

// LenFrom returns the number of rows from first on that are in filter. A nil filter admits all
// rows.
func (r Rows) LenFrom(first uint32, filter *roaring.Bitmap) int {
	if first == 0 {
		return r.LenIn(filter)
	}
	if r.bitmap != nil && filter == nil {
		return int(uint64(r.n) - r.bitmap.Rank(first-1))
	}
	n := 0
	for row := range r.From(first) {
		if filter == nil || filter.Contains(row) {
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
		return r.one == row
	case r.bitmap == nil:
		_, ok := slices.BinarySearch(r.list, row)
		return ok
	}
	return r.bitmap.Contains(row)
}

// rowsPage holds the rows of pageCodes consecutive code numbers. One row stands in
// value. Up to maxList rows stand in lists, which all codes of the page share. More
// rows are a bitmap. A code with one row takes five bytes. The writer changes a page
// only in the epoch in which it owns the page (see paged.Array).
type rowsPage struct {
	form    [pageCodes]uint8  // number of rows, 0 to maxList; or asBitmap
	value   [pageCodes]uint32 // by form: the row, the start in lists, or the index in bitmaps
	lists   []uint32          // lists of rows, one after the other, with gaps
	garbage int               // numbers in lists that belong to no list any more
	bitmaps []countedBitmap
}

const (
	pageCodes = 256
	asBitmap  = 255
)

// countedBitmap keeps the cardinality of a bitmap, which roaring would add up on each
// call.
type countedBitmap struct {
	n      uint32 // number of rows
	epoch  uint64 // epoch in which the bitmap was copied or made
	bitmap *roaring.Bitmap
}

// get returns the rows of the i-th code of the page.
func (p *rowsPage) get(i uint32) Rows {
	switch n := p.form[i]; n {
	case 0:
		return Rows{}
	case 1:
		return Rows{n: 1, one: p.value[i]}
	case asBitmap:
		b := &p.bitmaps[p.value[i]]
		return Rows{n: b.n, bitmap: b.bitmap}
	default:
		at := p.value[i]
		return Rows{n: uint32(n), list: p.lists[at : at+uint32(n) : at+uint32(n)]}
	}
}

// count returns the number of rows of the i-th code.
func (p *rowsPage) count(i uint32) int {
	if n := p.form[i]; n != asBitmap {
		return int(n)
	}
	return int(p.bitmaps[p.value[i]].n)
}

// unshare copies the slices of a page that has just been copied itself. Bitmaps are
// copied when they change.
func (p *rowsPage) unshare() {
	p.lists = slices.Clone(p.lists)
	p.bitmaps = slices.Clone(p.bitmaps)
}

// add puts a row into the set of the i-th code, and reports whether it was new.
func (p *rowsPage) add(i, row uint32, epoch uint64) bool {
	r := p.get(i)
	if r.Contains(row) {
		return false
	}
	switch {
	case r.n == 0:
		p.form[i], p.value[i] = 1, row
	case r.n == 1:
		p.setList(i, min(r.one, row), max(r.one, row))
	case r.n < maxList:
		at, _ := slices.BinarySearch(r.list, row)
		p.setList(i, slices.Insert(slices.Clone(r.list), at, row)...)
	case r.n == maxList:
		p.garbage += maxList
		b := roaring.BitmapOf(r.list...)
		b.Add(row)
		p.form[i], p.value[i] = asBitmap, uint32(len(p.bitmaps))
		p.bitmaps = append(p.bitmaps, countedBitmap{maxList + 1, epoch, b})
	default:
		b := p.ownBitmap(i, epoch)
		b.bitmap.Add(row)
		b.n++
	}
	return true
}

// remove takes a row out of the set of the i-th code, and reports whether it was there.
func (p *rowsPage) remove(i, row uint32, epoch uint64) bool {
	r := p.get(i)
	switch {
	case !r.Contains(row):
		return false
	case r.n == 1:
		p.form[i], p.value[i] = 0, 0
	case r.n == 2:
		p.garbage += 2
		p.form[i], p.value[i] = 1, r.list[0]
		if r.list[0] == row {
			p.value[i] = r.list[1]
		}
	case r.bitmap == nil:
		at, _ := slices.BinarySearch(r.list, row)
		copy(r.list[at:], r.list[at+1:]) // the page owns its lists
		p.form[i]--
		p.garbage++
	default:
		b := p.ownBitmap(i, epoch)
		b.bitmap.Remove(row)
		if b.n--; b.n <= maxList {
			list := b.bitmap.ToArray()
			p.dropBitmap(p.value[i])
			p.form[i] = 0
			p.setList(i, list...)
		}
	}
	return true
}

// setList makes rows the list of the i-th code, and counts its old list as garbage.
func (p *rowsPage) setList(i uint32, rows ...uint32) {
	if old := p.form[i]; old > 1 && old != asBitmap {
		p.garbage += int(old)
	}
	if p.garbage > 64 && 2*p.garbage > len(p.lists) {
		p.form[i] = 0
		p.compact()
	}
	p.value[i], p.form[i] = uint32(len(p.lists)), uint8(len(rows))
	p.lists = append(p.lists, rows...)
}

// compact closes the gaps between the lists.
func (p *rowsPage) compact() {
	lists := make([]uint32, 0, len(p.lists)-p.garbage+maxList)
	for i, n := range p.form {
		if n > 1 && n != asBitmap {
			at := p.value[i]
			p.value[i] = uint32(len(lists))
			lists = append(lists, p.lists[at:at+uint32(n)]...)
		}
	}
	p.lists, p.garbage = lists, 0
}

// ownBitmap returns the bitmap of the i-th code for the writer to change in this epoch.
// It copies the bitmap if an earlier epoch made it.
func (p *rowsPage) ownBitmap(i uint32, epoch uint64) *countedBitmap {
	b := &p.bitmaps[p.value[i]]
	if b.epoch != epoch {
		b.bitmap, b.epoch = b.bitmap.Clone(), epoch
	}
	return b
}

// dropBitmap forgets a bitmap, and moves the last one to its index.
func (p *rowsPage) dropBitmap(which uint32) {
	last := uint32(len(p.bitmaps) - 1)
	if which != last {
		p.bitmaps[which] = p.bitmaps[last]
		for i, f := range p.form {
			if f == asBitmap && p.value[i] == last {
				p.value[i] = which
			}
		}
	}
	p.bitmaps[last] = countedBitmap{}
	p.bitmaps = p.bitmaps[:last]
}

// empty reports whether no code of the page has rows.
func (p *rowsPage) empty() bool { return p.form == [pageCodes]uint8{} }

// bytes estimates the memory of the page in bytes.
func (p *rowsPage) bytes() int {
	n := pageCodes*5 + 72 + 4*cap(p.lists) + 24*cap(p.bitmaps)
	for _, b := range p.bitmaps {
		n += int(b.bitmap.GetSizeInBytes())
	}
	return n
}
