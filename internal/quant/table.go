package quant

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/paged"
)

// A Table is one state of the vectors of rows. It is immutable, and safe for any number of
// goroutines.
type Table struct {
	stride  int               // numbers that a vector takes
	covered uint32            // rows below it: what the table does not have, there is not
	pages   paged.Array[page] // by row / pageRows
	bytes   int               // memory of the pages
	zero    []int8            // the vector of a row that has none
}

// A page has the vectors of pageRows rows, one behind the other, without those that are not
// there. Readers see as much of data as the page that they have says. So the writer may
// append to the data of a page that is published, and copies it for every other change.
type page struct {
	mask  uint64 // a bit for each row that has a vector
	data  []int8 // their vectors, by row
	owned uint64 // epoch in which data was made; data of an earlier one is only appended to
}

const (
	pageRows  = 64
	pageBytes = int(unsafe.Sizeof(page{})) + 16 // with its place in paged.Array
)

// BytesOf returns how much memory so many rows that follow each other take at most, once they
// have been loaded, for vectors of so many dimensions.
func BytesOf(rows, dims int) int {
	return rows*stride(dims) + (rows/pageRows+2)*pageBytes
}

// Covered returns the row that the table ends at: it has the vectors of all rows below.
func (t *Table) Covered() uint32 { return t.covered }

// Bytes returns the memory of the table in bytes.
func (t *Table) Bytes() int { return t.bytes }

// at returns the vector of a row, nil if it has none.
func (p *page) at(row uint32, stride int) []int8 {
	bit := uint64(1) << (row % pageRows)
	if p == nil || p.mask&bit == 0 {
		return nil
	}
	i := bits.OnesCount64(p.mask&(bit-1)) * stride
	return p.data[i : i+stride : i+stride]
}

// Vector returns the vector of a row below Covered, padded with zeros to a multiple of eight
// numbers; nil if the row has none. It must not be written to.
func (t *Table) Vector(row uint32) []int8 { return t.pages.At(row/pageRows).at(row, t.stride) }

// find fills in where the vector of each row is. Rows that follow each other are mostly on
// one page.
func (t *Table) find(dst []*int8, rows []uint32) {
	number, stride := ^uint32(0), t.stride
	var p *page
	for i, row := range rows {
		if n := row / pageRows; n != number {
			number, p = n, t.pages.At(n)
		}
		bit := uint64(1) << (row % pageRows)
		if p == nil || p.mask&bit == 0 {
			dst[i] = &t.zero[0]
			continue
		}
		dst[i] = &p.data[bits.OnesCount64(p.mask&(bit-1))*stride]
	}
}

// A Writer changes a table and publishes its states. It belongs to one goroutine; the tables
// that it publishes may be shared. A new one covers no row.
//
// Vectors of rows from Covered on are kept only while the writer is open: those that it is given
// meanwhile are newer than those that a Part may bring.
type Writer struct {
	t       Table
	epoch   uint64   // number of published states + 1
	open    bool     // rows from covered on are kept, and noted in touched
	touched []uint32 // rows that were not covered when they were put or cleared; with repetitions
}

// NewWriter returns the writer of an empty table of vectors with so many dimensions, or, where
// their lengths matter, of elements of VectorBytes.
func NewWriter(dims int) *Writer {
	n := stride(dims)
	return &Writer{t: Table{stride: n, zero: make([]int8, n)}, epoch: 1}
}

// Covered returns the row that the table ends at.
func (w *Writer) Covered() uint32 { return w.t.covered }

// Bytes returns the memory of the table in bytes.
func (w *Writer) Bytes() int { return w.t.bytes }

// Publish returns the current state, which never changes. The first change of each page after
// it copies what of the page it cannot append to.
func (w *Writer) Publish() *Table {
	w.epoch++
	t := w.t
	return &t
}

// Open has the writer keep what it is given of rows from Covered on, until Close or Forget.
func (w *Writer) Open() { w.open = true }

// IsOpen reports whether the writer keeps what it is given of rows from Covered on.
func (w *Writer) IsOpen() bool { return w.open }

// Touched returns how many rows from Covered on the writer has been given since it was opened,
// or since it covered more; a row that was given twice counts twice.
func (w *Writer) Touched() int { return len(w.touched) }

// Close forgets all rows from Covered on.
func (w *Writer) Close() { w.Forget(w.t.covered) }

// Cover makes row n the one that the table ends at. The writer is open, and has been told of
// all rows from Covered on, and below n, that have a vector.
func (w *Writer) Cover(n uint32) {
	w.t.covered = n
	w.touched = slices.DeleteFunc(w.touched, func(row uint32) bool { return row < n })
}

// Forget takes out the vectors of all rows from n on, and closes the writer. If it has
// covered more rows, it covers those below n.
func (w *Writer) Forget(n uint32) {
	w.open, w.touched = false, nil
	w.t.covered = min(w.t.covered, n)
	first := n / pageRows
	if n%pageRows != 0 {
		if p := w.t.pages.At(first); p != nil {
			w.keep(first, p.mask&(1<<(n%pageRows)-1))
		}
		first++
	}
	w.t.pages.From(first, func(i uint32, p *page) {
		w.t.bytes -= p.bytes()
		w.t.pages.Drop(i, w.epoch)
	})
}

// keep takes out those vectors of a page that mask does not name.
func (w *Writer) keep(number uint32, mask uint64) {
	p := w.t.pages.At(number)
	if p == nil || p.mask == mask {
		return
	}
	w.t.bytes -= p.bytes()
	if mask == 0 {
		w.t.pages.Drop(number, w.epoch)
		return
	}
	data := make([]int8, 0, bits.OnesCount64(mask)*w.t.stride)
	for rest := mask; rest != 0; rest &= rest - 1 {
		data = append(data, p.at(uint32(bits.TrailingZeros64(rest)), w.t.stride)...)
	}
	w.set(number, page{mask: mask, data: data, owned: w.epoch})
}

// set makes p a page. What was there does not count in bytes any more.
func (w *Writer) set(number uint32, p page) {
	*w.t.pages.Own(number, w.epoch, func(*page) {}) = p
	w.t.bytes += p.bytes()
}

func (p *page) bytes() int { return pageBytes + cap(p.data) }

// Put makes v the vector of a row, or takes its vector away if v is nil. The numbers of v are
// signed bytes, one a dimension, and are copied. A row from Covered on is ignored unless the
// writer is open.
func (w *Writer) Put(row uint32, v []byte) {
	if row >= w.t.covered {
		if !w.open {
			return
		}
		w.touched = append(w.touched, row)
	}
	number, bit := row/pageRows, uint64(1)<<(row%pageRows)
	old := w.t.pages.At(number)
	if v == nil {
		if old != nil {
			w.keep(number, old.mask&^bit)
		}
		return
	}
	var p page
	if old != nil {
		p = *old
		w.t.bytes -= p.bytes()
	}
	at := bits.OnesCount64(p.mask&(bit-1)) * w.t.stride
	switch {
	case p.mask&bit != 0:
		if p.owned != w.epoch {
			p.data, p.owned = slices.Clone(p.data), w.epoch
		}
	case at == len(p.data):
		if at+w.t.stride > cap(p.data) { // up to a full page, which has no slack
			grown := make([]int8, at, min(max(2*at, w.t.stride), pageRows*w.t.stride))
			copy(grown, p.data)
			p.data, p.owned = grown, w.epoch
		}
		p.data = p.data[:at+w.t.stride]
	default:
		data := make([]int8, len(p.data)+w.t.stride)
		copy(data, p.data[:at])
		copy(data[at+w.t.stride:], p.data[at:])
		p.data, p.owned = data, w.epoch
	}
	p.mask |= bit
	to := p.data[at : at+w.t.stride]
	clear(to[copy(to, int8s(v)):])
	w.set(number, p)
}

// bytesAt returns n bytes that stand at p.
func bytesAt(p *int8, n int) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), n) }

// int8s returns bytes as signed numbers, in the same memory.
func int8s(b []byte) []int8 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(&b[0])), len(b))
}
