package mih

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// ErrFull is returned when the numbers of codes are used up.
var ErrFull = errors.New("2^32-1 distinct codes have been in use")

// A Table knows the distinct codes of a set of rows, by numbers that are never
// used again, and which rows carry each. It is immutable: a [Writer] publishes
// one after another, sharing what did not change.
//
// Most codes are in segments, which are indexed; those that came since are in
// the tail, which is scanned.
type Table struct {
	bits      int
	segments  []*segment
	tail      codec.Codes // number - tailFirst
	tailFirst uint32
	rows      paged[rowsPage]
	codes     paged[[pageCodes]uint32] // row -> number + 1; 0 is none
	items     int
	used      int
}

// Bits returns the length of the codes in bits.
func (t *Table) Bits() int { return t.bits }

// Next returns the number that the next new code will get.
func (t *Table) Next() uint32 { return t.tailFirst + uint32(t.tail.Len()) }

// Code returns the code with a number that some row carries, nil if it is known
// that there is none; it must not be written to.
func (t *Table) Code(n uint32) codec.Code {
	if n >= t.tailFirst {
		if n >= t.Next() {
			return nil
		}
		return t.tail.At(int(n - t.tailFirst))
	}
	for _, g := range t.segments {
		if n < g.last {
			return g.code(n)
		}
	}
	return nil
}

// Rows returns the rows that carry code number n.
func (t *Table) Rows(n uint32) Rows {
	if p := t.rows.at(n / pageCodes); p != nil {
		return p.get(n % pageCodes)
	}
	return Rows{}
}

// Cardinality returns the number of rows that carry code number n.
func (t *Table) Cardinality(n uint32) int {
	if p := t.rows.at(n / pageCodes); p != nil {
		return p.count(n % pageCodes)
	}
	return 0
}

// CodeOf returns the number of the code that a row carries.
func (t *Table) CodeOf(row uint32) (n uint32, ok bool) {
	if p := t.codes.at(row / pageCodes); p != nil {
		n = p[row%pageCodes]
	}
	return n - 1, n > 0
}

// Items returns the number of rows that carry a code.
func (t *Table) Items() int { return t.items }

// Distinct returns the number of codes that some row carries.
func (t *Table) Distinct() int { return t.used }

// All yields the numbers of the codes that some row carries, ascending, with the
// codes.
func (t *Table) All() iter.Seq2[uint32, codec.Code] { return t.all(0) }

// all is All without the first segments.
func (t *Table) all(skip int) iter.Seq2[uint32, codec.Code] {
	return func(yield func(uint32, codec.Code) bool) {
		for _, g := range t.segments[skip:] {
			for n, c := range g.all() {
				if t.Cardinality(n) > 0 && !yield(n, c) {
					return
				}
			}
		}
		for i := range t.tail.Len() {
			n := t.tailFirst + uint32(i)
			if t.Cardinality(n) > 0 && !yield(n, t.tail.At(i)) {
				return
			}
		}
	}
}

// Memory is what a table takes, in bytes.
type Memory struct {
	Codes  int // codes and their numbers
	Tables int // tables of substrings
	Rows   int // which rows carry which code, both ways
}

// Memory estimates what the table takes, in time linear in the number of codes / 256.
func (t *Table) Memory() Memory {
	var m Memory
	for _, g := range t.segments {
		codes, tables := g.bytes()
		m.Codes += codes
		m.Tables += tables
	}
	m.Codes += 8 * t.tail.Len() * codec.Words(t.bits)
	t.rows.all(func(p *rowsPage) { m.Rows += p.bytes() })
	t.codes.all(func(*[pageCodes]uint32) { m.Rows += 4*pageCodes + 8 })
	return m
}

// TableBytes estimates what the tables of substrings take, in a few nanoseconds.
func (t *Table) TableBytes() int {
	sum := 0
	for _, g := range t.segments {
		_, tables := g.bytes()
		sum += tables
	}
	return sum
}

// Covered returns how many codes, of which no row may carry some any more, are in
// segments with tables, in segments without, and in the tail.
func (t *Table) Covered() (tables, bare, tail int) {
	for _, g := range t.segments {
		if g.bare {
			bare += g.len()
		} else {
			tables += g.len()
		}
	}
	return tables, bare, t.tail.Len()
}

// A Writer changes a table and publishes its states. Not safe for concurrent
// use; the tables that it publishes are.
type Writer struct {
	t     Table
	epoch uint64 // states published so far + 1
	seed  maphash.Seed
	slots []uint32 // hash table of the tail: place + 1; 0 is empty
	fresh uint32   // number + 1 of a code that has its first row yet to come
}

// NewWriter returns a writer of an empty table of codes of q bits.
func NewWriter(q int) *Writer {
	w := &Writer{t: Table{bits: q, tail: codec.NewCodes(q, 0)}, epoch: 1, seed: maphash.MakeSeed()}
	w.rehash()
	return w
}

// alive reports whether a code is to be found.
func (w *Writer) alive(n uint32) bool { return w.t.Cardinality(n) > 0 || n+1 == w.fresh }

// rehash makes the hash table of the tail anew, with room to double it.
func (w *Writer) rehash() {
	n := w.t.tail.Len()
	size := 64
	for size < 3*n {
		size *= 2
	}
	w.slots = make([]uint32, size)
	for i := range n {
		if w.alive(w.t.tailFirst + uint32(i)) {
			w.slots[w.slot(w.t.tail.At(i))] = uint32(i) + 1
		}
	}
}

// slot returns the slot of a code of the tail: where its place stands, or the
// empty one where it belongs.
func (w *Writer) slot(c codec.Code) int {
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, x := range c {
		maphash.WriteComparable(&h, x)
	}
	mask := len(w.slots) - 1
	for i := int(h.Sum64()) & mask; ; i = (i + 1) & mask {
		if p := w.slots[i]; p == 0 || slices.Equal(w.t.tail.At(int(p-1)), c) {
			return i
		}
	}
}

// find returns the number of a code that some row carries.
func (w *Writer) find(c codec.Code) (n uint32, ok bool) {
	if p := w.slots[w.slot(c)]; p > 0 {
		if n = w.t.tailFirst + p - 1; w.alive(n) {
			return n, true
		}
	}
	for _, g := range w.t.segments {
		if n, ok := g.find(c); ok && w.t.Cardinality(n) > 0 {
			return n, true
		}
	}
	return 0, false
}

// Number returns the number of the code, giving it the next one if no row
// carries it: that row must be added before the next call.
func (w *Writer) Number(c codec.Code) (n uint32, isNew bool, err error) {
	if n, ok := w.find(c); ok {
		return n, false, nil
	}
	if n = w.t.Next(); n >= math.MaxUint32-1 {
		return 0, false, ErrFull
	}
	at := w.slot(c) // of an entry that no row carries any more, perhaps
	w.t.tail.Append(c)
	w.slots[at], w.fresh = uint32(w.t.tail.Len()), n+1
	if 2*w.t.tail.Len() > len(w.slots) {
		w.rehash()
	}
	return n, true, nil
}

// Add records that row, which carries no code, carries code number n.
func (w *Writer) Add(n, row uint32) {
	if n+1 == w.fresh {
		w.fresh = 0
	}
	p := w.t.rows.own(n/pageCodes, w.epoch, (*rowsPage).unshare)
	if p.count(n%pageCodes) == 0 {
		w.t.used++
	}
	if p.add(n%pageCodes, row, w.epoch) {
		w.t.items++
	}
	w.t.codes.own(row/pageCodes, w.epoch, func(*[pageCodes]uint32) {})[row%pageCodes] = n + 1
}

// Remove records that row does not carry code number n any more.
func (w *Writer) Remove(n, row uint32) {
	page := n / pageCodes
	p := w.t.rows.own(page, w.epoch, (*rowsPage).unshare)
	if p.remove(n%pageCodes, row, w.epoch) {
		w.t.items--
		if p.count(n%pageCodes) == 0 {
			w.t.used--
			if w.t.Next()/pageCodes > page && p.empty() {
				w.t.rows.drop(page, w.epoch)
			}
		}
	}
	page = row / pageCodes
	codes := w.t.codes.own(page, w.epoch, func(*[pageCodes]uint32) {})
	codes[row%pageCodes] = 0
	if *codes == [pageCodes]uint32{} {
		w.t.codes.drop(page, w.epoch)
	}
}

// Table returns the state as it is, for the writer's own goroutine; it changes
// with it. What is to be kept, or shown to others, comes from Publish.
func (w *Writer) Table() *Table { return &w.t }

// Publish returns the table as it stands; later changes do not show in it. The
// cost is that of the pages touched after it.
func (w *Writer) Publish() *Table {
	w.epoch++
	t := w.t
	return &t
}

// Load fills an empty writer with codes, given by ascending number, and indexes
// them; their rows have been or will be added with Add. next is the number of
// the next new code; bare is as in Build.
func (w *Writer) Load(ctx context.Context, numbers []uint32, codes codec.Codes, next uint32, bare bool) error {
	if codes.Len() < minSegment {
		// Few: the tail holds them, with gaps.
		if int(next)-minSegment > 4*minSegment {
			return w.loadSegment(ctx, numbers, codes, next, bare)
		}
		blank := codec.NewCode(w.t.bits)
		for i, n := range numbers {
			for w.t.Next() < n {
				w.t.tail.Append(blank)
			}
			w.t.tail.Append(codes.At(i))
		}
		for w.t.Next() < next {
			w.t.tail.Append(blank)
		}
		w.rehash() // of nothing, as there are no rows yet
		for i, n := range numbers {
			at := w.slot(codes.At(i))
			if p := w.slots[at]; p > 0 {
				return fmt.Errorf("numbers %d and %d have the same code", p-1, n)
			}
			w.slots[at] = n + 1
		}
		return nil
	}
	return w.loadSegment(ctx, numbers, codes, next, bare)
}

func (w *Writer) loadSegment(ctx context.Context, numbers []uint32, codes codec.Codes, next uint32, bare bool) error {
	g, err := newSegment(ctx, SplitFor(w.t.bits, codes.Len()), 0, next, numbers, codes, bare, 0)
	if err != nil {
		return err
	}
	if err := g.calibrate(ctx); err != nil {
		return err
	}
	w.t.segments, w.t.tailFirst = []*segment{g}, next
	return nil
}
