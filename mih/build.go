package mih

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
)

// New codes go to the tail, which every search scans. When the tail is large enough it
// becomes a segment. The last segments are merged into it as long as they are not
// several times larger than the sum of what follows them. So the sizes of segments fall
// geometrically, there are few of them, and a code is moved O(log n) times.
const (
	minSegment = 1024           // codes in a segment or more; fewer are scanned in a microsecond
	maxTail    = 4096           // codes; a tail of that length is always built
	growth     = 6              // a segment stays if it is this many times larger than what follows it
	maxWaste   = .5             // share of dead codes above which everything is built again
	minWaste   = 4 * minSegment // indexed codes below which dead ones do not matter
)

// A Build makes one segment of the last segments and the tail of a published table. Run
// may be called in any goroutine while the table's Writer goes on. The writer's
// goroutine installs the result.
type Build struct {
	// Bare leaves out the tables of substrings, which take most of the memory. Bare
	// segments are scanned.
	Bare bool

	// Cells makes the segment keep its codes by cells, for [Query.Recall].
	Cells bool

	// Workers is the number of goroutines of Run; 0 means GOMAXPROCS.
	Workers int

	t    *Table   // the table that is built from
	keep int      // number of first segments that stay
	last uint32   // the number after the last code that the segment covers
	made *segment // by Run, for Install
}

// Build returns the build that is due, or nil if none is due.
func (t *Table) Build() *Build {
	tail := t.tail.Len()
	if tail >= min(max(minSegment, t.used/256), maxTail) {
		keep := len(t.segments)
		for size := tail; keep > 0 && t.segments[keep-1].len() < growth*size; keep-- {
			size += t.segments[keep-1].len()
		}
		return &Build{t: t, keep: keep, last: t.Next()}
	}
	if t.Wasted() > maxWaste && t.indexed() > minWaste {
		return t.Rebuild()
	}
	return nil
}

// Rebuild returns a build that makes one segment of all live codes, which drops the
// dead ones.
func (t *Table) Rebuild() *Build { return &Build{t: t, last: t.Next()} }

// indexed returns the number of codes in segments and tail, dead ones included.
func (t *Table) indexed() int {
	n := t.tail.Len()
	for _, g := range t.segments {
		n += g.len()
	}
	return n
}

// Wasted returns the share of indexed codes that no row carries any more.
func (t *Table) Wasted() float64 {
	n := t.indexed()
	if n == 0 {
		return 0
	}
	return 1 - float64(t.used)/float64(n)
}

// codes returns the number of codes that the segment has at most.
func (b *Build) codes() int {
	n := b.t.tail.Len()
	for _, g := range b.t.segments[b.keep:] {
		n += g.len()
	}
	return n
}

// TableBytes returns the memory in bytes that the tables of the segment take if it is
// not bare.
func (b *Build) TableBytes() int { return TableBytes(b.t.bits, b.codes()) }

// KeptBytes returns the memory in bytes of the tables of the segments that stay.
func (b *Build) KeptBytes() int {
	sum := 0
	for _, g := range b.t.segments[:b.keep] {
		_, tables := g.bytes()
		sum += tables
	}
	return sum
}

// Run builds and calibrates the segment, in time O(m n) for n codes and m substrings.
// It returns an error when ctx ends, or when two numbers have the same code.
func (b *Build) Run(ctx context.Context) error {
	first := uint32(0)
	if b.keep > 0 {
		first = b.t.segments[b.keep-1].last
	}
	n := b.codes()
	codes, numbers := codec.NewCodes(b.t.bits, n), make([]uint32, 0, n)
	for number, c := range b.t.all(b.keep) {
		numbers = append(numbers, number)
		codes.Append(c)
	}
	g, err := newSegment(ctx, SplitFor(b.t.bits, codes.Len()), first, b.last, numbers, codes,
		layout{b.Bare, b.Cells}, b.Workers)
	if err != nil {
		return err
	}
	b.made = g
	return g.calibrate(ctx)
}

// Install replaces the segments and the tail that b was made from by the segment that
// b.Run has made. Codes added since stay in the tail. b must come from a table of this
// writer, and only one build may be under way at a time. Only the writer's goroutine
// may call Install.
func (w *Writer) Install(b *Build) {
	fresh := codec.NewCodes(w.t.bits, 0)
	for i := int(b.last - w.t.tailFirst); i < w.t.tail.Len(); i++ {
		fresh.Append(w.t.tail.At(i))
	}
	w.t.segments = append(w.t.segments[:b.keep:b.keep], b.made)
	w.t.tail, w.t.tailFirst = fresh, b.last
	w.rehash()
}
