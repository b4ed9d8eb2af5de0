package mih

import (
	"context"

	"github.com/fddhdb/fddhdb/codec"
)

// Codes come to the tail, which every search scans. When it has grown enough it
// becomes a segment, together with the segments before it that are not several
// times larger than what would follow them: so the sizes of the segments fall
// geometrically, there are few of them, and a code is moved O(log n) times.
const (
	minSegment = 1024 // codes; fewer are scanned in a microsecond
	maxTail    = 4096
	growth     = 6
	maxWaste   = .5 // share of codes that are gone, until all is built anew
	minWaste   = 4 * minSegment
)

// A Build makes one segment of the last segments and the tail of a table. It
// can run in any goroutine while the table's Writer goes on.
type Build struct {
	// Bare leaves out the tables of substrings, which take most of the memory:
	// the codes are found by scans.
	Bare bool

	// Workers is how many goroutines Run works on; 0 stands for GOMAXPROCS.
	Workers int

	t    *Table
	keep int // segments that stay
	last uint32
	made *segment
}

// Build returns the build that is due; nil if none is.
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

// Rebuild returns the build of one segment of everything, for codes that no row
// carries any more to go.
func (t *Table) Rebuild() *Build { return &Build{t: t, last: t.Next()} }

// indexed returns the number of codes in segments and tail, dead ones too.
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

// codes returns how many codes the segment will have at most.
func (b *Build) codes() int {
	n := b.t.tail.Len()
	for _, g := range b.t.segments[b.keep:] {
		n += g.len()
	}
	return n
}

// TableBytes returns the memory that the tables of the segment will take, if it
// is not bare.
func (b *Build) TableBytes() int { return TableBytes(b.t.bits, b.codes()) }

// KeptBytes returns the memory of the tables of the segments that stay.
func (b *Build) KeptBytes() int {
	sum := 0
	for _, g := range b.t.segments[:b.keep] {
		_, tables := g.bytes()
		sum += tables
	}
	return sum
}

// Run does the work: time and memory as for building the index of the codes.
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
	g, err := newSegment(ctx, SplitFor(b.t.bits, codes.Len()), first, b.last, numbers, codes, b.Bare, b.Workers)
	if err != nil {
		return err
	}
	b.made = g
	return g.calibrate(ctx)
}

// Install puts what a build has made in place of what it was made from. Codes
// that came since are in the tail again. Only builds of tables of this writer,
// one at a time, may be installed.
func (w *Writer) Install(b *Build) {
	fresh := codec.NewCodes(w.t.bits, 0)
	for i := int(b.last - w.t.tailFirst); i < w.t.tail.Len(); i++ {
		fresh.Append(w.t.tail.At(i))
	}
	w.t.segments = append(w.t.segments[:b.keep:b.keep], b.made)
	w.t.tail, w.t.tailFirst = fresh, b.last
	w.rehash()
}
