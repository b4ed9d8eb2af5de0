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
	"github.com/fddhdb/fddhdb/internal/paged"
)

// ErrFull is returned when all code numbers have been used.
var ErrFull = errors.New("2^32-1 distinct codes have been in use")

// A Table knows the distinct codes of a set of rows, and the rows that carry each code.
// Codes have numbers that are never used again. A Table is immutable and safe for any
// number of goroutines: a [Writer] publishes one table after another, which share the
// parts that did not change.
//
// Most codes are in segments, which are indexed. Newer codes are in the tail, which
// every search scans.
type Table struct {
	bits      int                            // of a code
	segments  []*segment                     // by ascending numbers; each is immutable
	tail      codec.Codes                    // by number - tailFirst; dead codes too
	tailFirst uint32                         // number of the first code of the tail
	rows      paged.Array[rowsPage]          // code number -> rows
	codes     paged.Array[[pageCodes]uint32] // row -> code number + 1; 0 is none
	items     int                            // rows that carry a code
	used      int                            // codes that some row carries
}

// Bits returns the length of the codes in bits.
func (t *Table) Bits() int { return t.bits }

// Next returns the number that the next new code will get.
func (t *Table) Next() uint32 { return t.tailFirst + uint32(t.tail.Len()) }

// Code returns code n, which some row carries. It may return nil if no row carries it.
// The caller must not write to it.
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
	if p := t.rows.At(n / pageCodes); p != nil {
		return p.get(n % pageCodes)
	}
	return Rows{}
}

// AppendRows appends the rows of each of the codes to dst, as Rows returns them. It is several times
// as fast as that many calls: a loop that does nothing but read waits for several places in memory
// at once.
func (t *Table) AppendRows(dst []Rows, codes []Scored) []Rows {
	var forms [256]uint8
	var values [256]uint32
	dst = slices.Grow(dst, len(codes))
	for part := range slices.Chunk(codes, len(forms)) {
		for i := range part {
			forms[i] = 0
			if p := t.rows.At(part[i].Number / pageCodes); p != nil {
				forms[i], values[i] = p.form[part[i].Number%pageCodes], p.value[part[i].Number%pageCodes]
			}
		}
		for i := range part {
			r := Rows{}
			switch forms[i] {
			case 0:
			case 1:
				r = Rows{n: 1, one: values[i]}
			default:
				r = t.Rows(part[i].Number)
			}
			dst = append(dst, r)
		}
	}
	return dst
}

// readForms writes the forms of the rows of codes within bound bits to dst, for the reason that
// AppendRows has.
func (t *Table) readForms(dst []uint8, codes []codec.Near, bound int) {
	for i, x := range codes {
		dst[i] = 0
		if x.Distance() > bound {
			continue
		}
		if p := t.rows.At(x.Position() / pageCodes); p != nil {
			dst[i] = p.form[x.Position()%pageCodes]
		}
	}
}

// Cardinality returns the number of rows that carry code number n.
func (t *Table) Cardinality(n uint32) int {
	if p := t.rows.At(n / pageCodes); p != nil {
		return p.count(n % pageCodes)
	}
	return 0
}

// CodeOf returns the number of the code that a row carries; ok says whether it carries
// one.
func (t *Table) CodeOf(row uint32) (n uint32, ok bool) {
	if p := t.codes.At(row / pageCodes); p != nil {
		n = p[row%pageCodes]
	}
	return n - 1, n > 0
}

// Items returns the number of rows that carry a code.
func (t *Table) Items() int { return t.items }

// Distinct returns the number of codes that some row carries.
func (t *Table) Distinct() int { return t.used }

// All yields the codes that some row carries, with their numbers, which ascend. The
// codes must not be written to.
func (t *Table) All() iter.Seq2[uint32, codec.Code] { return t.all(0) }

// all is All without the first skip segments.
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

// Memory is the memory of a table in bytes.
type Memory struct {
	Codes  int // codes and their numbers
	Tables int // tables of substrings
	Rows   int // which rows carry which code, in both directions
}

// Memory estimates the memory of the table, in time linear in the number of codes /
// 256.
func (t *Table) Memory() Memory {
	var m Memory
	for _, g := range t.segments {
		codes, tables := g.bytes()
		m.Codes += codes
		m.Tables += tables
	}
	m.Codes += 8 * t.tail.Len() * codec.Words(t.bits)
	t.rows.All(func(p *rowsPage) { m.Rows += p.bytes() })
	t.codes.All(func(*[pageCodes]uint32) { m.Rows += 4*pageCodes + 8 })
	return m
}

// TableBytes estimates the memory of the tables of substrings in bytes. It takes a few
// nanoseconds.
func (t *Table) TableBytes() int {
	sum := 0
	for _, g := range t.segments {
		_, tables := g.bytes()
		sum += tables
	}
	return sum
}

// Covered returns the number of codes in segments with tables, in segments without, and
// in the tail. It counts dead codes too. Codes that are too long for tables count only in
// the tail.
func (t *Table) Covered() (tables, bare, tail int) {
	for _, g := range t.segments {
		switch {
		case !Tabled(t.bits):
		case g.bare:
			bare += g.len()
		default:
			tables += g.len()
		}
	}
	return tables, bare, t.tail.Len()
}

// LacksCells reports whether some segment could have cells and has none.
func (t *Table) LacksCells() bool {
	return slices.ContainsFunc(t.segments, func(g *segment) bool {
		return g.cells == nil && celled(t.bits, g.len())
	})
}

// A Writer changes a table and publishes its states. It belongs to one goroutine; the
// tables that it publishes may be shared.
type Writer struct {
	t     Table        // the state as it is now; shares pages with what was published
	epoch uint64       // number of published states + 1; pages of earlier epochs are shared
	seed  maphash.Seed // of the hash of codes
	slots []uint32     // hash table of the tail: position + 1; 0 is empty
	fresh uint32       // number + 1 of a code that Number has made and that has no row yet
}

// NewWriter returns a writer of an empty table of codes of q bits.
func NewWriter(q int) *Writer {
	// One seed serves all tables of a writer. It is random, so that nobody can choose
	// codes that collide.
	w := &Writer{t: Table{bits: q, tail: codec.NewCodes(q, 0)}, epoch: 1, seed: maphash.MakeSeed()}
	w.rehash()
	return w
}

// alive reports whether find may return code n: some row carries it, or is about to.
func (w *Writer) alive(n uint32) bool { return w.t.Cardinality(n) > 0 || n+1 == w.fresh }

// rehash builds the hash table of the tail again, with room for the tail to double.
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

// slot returns the index in slots that holds code c, or the empty one where c belongs.
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

// Number returns the number of code c. If no row carries c it gives it a new number,
// and isNew is true: the caller must then Add a row before it calls Number again. The
// error is ErrFull, or nil.
func (w *Writer) Number(c codec.Code) (n uint32, isNew bool, err error) {
	if n, ok := w.find(c); ok {
		return n, false, nil
	}
	if n = w.t.Next(); n >= math.MaxUint32-1 {
		return 0, false, ErrFull
	}
	at := w.slot(c) // perhaps the slot of a dead entry of the same code
	w.t.tail.Append(c)
	w.slots[at], w.fresh = uint32(w.t.tail.Len()), n+1
	if 2*w.t.tail.Len() > len(w.slots) {
		w.rehash()
	}
	return n, true, nil
}

// Add records that row carries code n. The row must carry no code yet.
func (w *Writer) Add(n, row uint32) {
	if n+1 == w.fresh {
		w.fresh = 0
	}
	p := w.t.rows.Own(n/pageCodes, w.epoch, (*rowsPage).unshare)
	if p.count(n%pageCodes) == 0 {
		w.t.used++
	}
	if p.add(n%pageCodes, row, w.epoch) {
		w.t.items++
	}
	w.t.codes.Own(row/pageCodes, w.epoch, func(*[pageCodes]uint32) {})[row%pageCodes] = n + 1
}

// Remove records that row no longer carries code n.
func (w *Writer) Remove(n, row uint32) {
	page := n / pageCodes
	p := w.t.rows.Own(page, w.epoch, (*rowsPage).unshare)
	if p.remove(n%pageCodes, row, w.epoch) {
		w.t.items--
		if p.count(n%pageCodes) == 0 {
			w.t.used--
			if w.t.Next()/pageCodes > page && p.empty() {
				w.t.rows.Drop(page, w.epoch)
			}
		}
	}
	page = row / pageCodes
	codes := w.t.codes.Own(page, w.epoch, func(*[pageCodes]uint32) {})
	codes[row%pageCodes] = 0
	if *codes == [pageCodes]uint32{} {
		w.t.codes.Drop(page, w.epoch)
	}
}

// Table returns the current state, for the writer's own goroutine. It changes as the
// writer goes on. Publish returns a state that may be kept or shared.
func (w *Writer) Table() *Table { return &w.t }

// Publish returns the current state as a Table that never changes. Its cost is paid
// later: the first change of each page copies that page.
func (w *Writer) Publish() *Table {
	w.epoch++
	t := w.t
	return &t
}

// Load fills an empty writer with codes, and indexes them. numbers ascend. The rows of
// the codes are added with Add, before or after. next is the number of the next new
// code. bare is as in [Build]. Load returns an error if two numbers have the same code,
// or when ctx ends.
func (w *Writer) Load(ctx context.Context, numbers []uint32, codes codec.Codes, next uint32,
	bare bool) error {
	if codes.Len() < minSegment {
		// few codes: the tail holds them, with gaps
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

// loadSegment makes all codes one segment.
func (w *Writer) loadSegment(ctx context.Context, numbers []uint32, codes codec.Codes, next uint32,
	bare bool) error {
	g, err := newSegment(ctx, SplitFor(w.t.bits, codes.Len()), 0, next, numbers, codes, layout{bare: bare}, 0)
	if err != nil {
		return err
	}
	if err := g.calibrate(ctx); err != nil {
		return err
	}
	w.t.segments, w.t.tailFirst = []*segment{g}, next
	return nil
}
