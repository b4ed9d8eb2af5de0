package mih

import (
	"errors"
	"hash/maphash"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// ErrFull is returned when the numbers of codes are used up.
var ErrFull = errors.New("2^32-1 distinct codes are in use")

// pageRows is the number of codes whose rows share a page: a commit that
// changes the rows of one code copies one page and the list of pages.
const pageRows = 256

type page [pageRows]Rows

// A Table numbers distinct codes from 0 and knows which rows carry each. It is
// immutable: a Writer publishes one after another, sharing what did not change.
type Table struct {
	codes codec.Codes
	pages []*page
	items int
	used  int
}

// Codes returns the distinct codes, by number. A code that no row carries any
// more stays.
func (t *Table) Codes() codec.Codes { return t.codes }

// Rows returns the rows that carry code number n.
func (t *Table) Rows(n uint32) Rows { return t.pages[n/pageRows][n%pageRows] }

// Cardinality returns the number of rows that carry code number n.
func (t *Table) Cardinality(n uint32) int { return t.Rows(n).Len() }

// Items returns the number of rows that carry a code.
func (t *Table) Items() int { return t.items }

// Distinct returns the number of codes that some row carries.
func (t *Table) Distinct() int { return t.used }

// MemoryBytes estimates the memory that the table takes, in bytes, in time
// linear in the number of codes.
func (t *Table) MemoryBytes() int {
	n := 8*len(t.codes.Slice(0, t.codes.Len())) + len(t.pages)*(8+pageRows*16)
	for i := range t.codes.Len() {
		n += t.Rows(uint32(i)).bytes()
	}
	return n
}

// A Writer changes a table and publishes its states. Not safe for concurrent
// use; the tables that it publishes are.
type Writer struct {
	t        Table
	seed     maphash.Seed
	slots    []uint32 // hash table of code numbers + 1; 0 is empty
	shared   bool     // pages is shown by a published table
	ownPages map[int]struct{}
	ownRows  map[uint32]struct{}
}

// NewWriter returns a writer of an empty table of codes of q bits, with room
// for n distinct ones.
func NewWriter(q, n int) *Writer {
	w := &Writer{
		t:        Table{codes: codec.NewCodes(q, n)},
		seed:     maphash.MakeSeed(),
		ownPages: map[int]struct{}{},
		ownRows:  map[uint32]struct{}{},
	}
	w.rehash(n)
	return w
}

func (w *Writer) rehash(n int) {
	size := 16
	for size < 2*n {
		size *= 2
	}
	w.slots = make([]uint32, size)
	for i := range w.t.codes.Len() {
		w.slots[w.slot(w.t.codes.At(i))] = uint32(i) + 1
	}
}

// slot returns the slot of the code: where its number stands, or the empty one
// where it belongs.
func (w *Writer) slot(c codec.Code) int {
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, x := range c {
		maphash.WriteComparable(&h, x)
	}
	mask := len(w.slots) - 1
	for i := int(h.Sum64()) & mask; ; i = (i + 1) & mask {
		if n := w.slots[i]; n == 0 || slices.Equal(w.t.codes.At(int(n-1)), c) {
			return i
		}
	}
}

// Number returns the number of the code, giving it the next one if it is new.
func (w *Writer) Number(c codec.Code) (n uint32, isNew bool, err error) {
	at := w.slot(c)
	if n := w.slots[at]; n > 0 {
		return n - 1, false, nil
	}
	next := w.t.codes.Len()
	if next >= math.MaxUint32-1 {
		return 0, false, ErrFull
	}
	w.t.codes.Append(c)
	w.slots[at] = uint32(next) + 1
	if 2*(next+1) > len(w.slots) {
		w.rehash(2 * (next + 1))
	}
	if next/pageRows == len(w.t.pages) {
		w.ownList()
		w.t.pages = append(w.t.pages, new(page))
		w.ownPages[next/pageRows] = struct{}{}
	}
	return uint32(next), true, nil
}

func (w *Writer) ownList() {
	if w.shared {
		w.t.pages, w.shared = slices.Clone(w.t.pages), false
	}
}

// change replaces the rows of code number n, in memory that no published table shows.
func (w *Writer) change(n uint32, f func(r Rows, owned bool) Rows) {
	i := int(n / pageRows)
	if _, owned := w.ownPages[i]; !owned {
		w.ownList()
		p := *w.t.pages[i]
		w.t.pages[i] = &p
		w.ownPages[i] = struct{}{}
	}
	r := &w.t.pages[i][n%pageRows]
	_, owned := w.ownRows[n]
	before := r.Len()
	*r = f(*r, owned)
	if r.Len() == before {
		return
	}
	w.ownRows[n] = struct{}{}
	w.t.items += r.Len() - before
	switch {
	case before == 0:
		w.t.used++
	case r.Len() == 0:
		w.t.used--
	}
}

// Add records that row carries code number n.
func (w *Writer) Add(n, row uint32) {
	w.change(n, func(r Rows, owned bool) Rows { return r.add(row, owned) })
}

// Remove records that row does not carry code number n any more.
func (w *Writer) Remove(n, row uint32) {
	w.change(n, func(r Rows, owned bool) Rows { return r.remove(row, owned) })
}

// Items returns the number of rows that carry a code.
func (w *Writer) Items() int { return w.t.items }

// Code returns code number n; it must not be written to.
func (w *Writer) Code(n uint32) codec.Code { return w.t.codes.At(int(n)) }

// Len returns the number of codes that have a number.
func (w *Writer) Len() int { return w.t.codes.Len() }

// Publish returns the table as it stands; later changes do not show in it. The
// cost is that of the pages touched since the last call.
func (w *Writer) Publish() *Table {
	w.shared = true
	clear(w.ownPages)
	clear(w.ownRows)
	t := w.t
	return &t
}
