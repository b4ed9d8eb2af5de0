package mih

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/codec"
)

// A segment indexes the codes whose numbers lie in a range. It never changes once it is
// built, so goroutines share it without a lock. Codes that come later go to the tail of
// the Table or into another segment. Codes that no row carries any more stay until the
// segment is merged with others.
//
// Codes of a large segment are sorted by their cell. Otherwise they are sorted by their
// first substring, so that each of its buckets is a run of codes that is read in order.
// The position of a code in that order is its slot.
type segment struct {
	first, last uint32      // numbers first to last-1 belong to this segment
	split       Split       // how codes are cut into substrings
	order       bitOrder    // of the bits, before codes are cut
	masks       []groupMask // the bits of each group of substrings
	codes       codec.Codes // by slot
	numbers     []uint32    // by slot
	// number - first -> slot, or len() for none; if sparse, the slots in order of their numbers
	slots  packed
	sparse bool          // the range has too many gaps for a slot per number
	bare   bool          // without tables: it can only be scanned, or searched by cells
	cells  *cells        // nil if it has none
	tables []bucketTable // of each substring; the first one alone if bare, as find needs it
	costs  costs         // of a search of this segment, as measured
	reach  reach         // estimates the radius at which a k-NN search ends
}

// A segment is sparse if its range has more than so many numbers per code. Codes that have
// gone must not leave memory behind for ever.
const sparseRange = 3

// A bucketTable finds the codes that have a certain value in one substring.
type bucketTable struct {
	offsets []uint32 // bucket -> first of its entries; and the end of the last bucket
	slots   packed   // entry -> slot; none in the first table without cells, where they are the same
	// Entry -> the other substring of the pair; or, without pairs, entry -> the code.
	partners []uint16
	codes    []uint64
}

// A layout says what a segment has besides its codes.
type layout struct {
	bare  bool // no tables
	cells bool // codes by cells, if there are enough
}

// newSegment builds a segment of codes with the given numbers, which ascend. It takes
// O(m n) time and works on the tables with so many goroutines; 0 workers means
// GOMAXPROCS. It returns an error if two numbers have the same code, or when ctx ends.
func newSegment(ctx context.Context, split Split, first, last uint32, numbers []uint32, codes codec.Codes,
	l layout, workers int) (*segment, error) {
	n, q := codes.Len(), codes.Bits()
	if split.paired() && (split.Len()%2 != 0 || split.Width(0) > partnerBits) {
		return nil, fmt.Errorf("%d substrings of %d bits do not come in pairs", split.Len(), q)
	}
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	bare := l.bare || !Tabled(q)
	g := &segment{
		first: first, last: last, split: split, bare: bare,
		codes: codec.NewCodes(q, n), tables: make([]bucketTable, split.Len()),
	}
	inHugePages(g.codes.Slice(0, 0))
	if l.cells && celled(q, n) {
		g.cells = new(cells)
	}
	g.allocate(n)
	g.order = findOrder(codes, split)
	for p := range g.groups() {
		g.masks = append(g.masks, g.order.mask(q, split.starts[g.group(p)], split.starts[g.group(p+1)]))
	}
	ordered := g.order.applyAll(codes)
	order := make([]uint32, n)
	if g.cells != nil {
		if err := g.cells.fill(ctx, codes, order, workers); err != nil {
			return nil, err
		}
	} else if err := g.sortBySubstring(ctx, order, ordered, codes, numbers); err != nil {
		return nil, err
	}
	slots := make([]uint32, g.slots.len())
	for i := range slots {
		slots[i] = uint32(n)
	}
	for slot, i := range order {
		g.codes.Append(codes.At(int(i)))
		g.numbers[slot] = numbers[i]
		if !g.sparse {
			slots[numbers[i]-first] = uint32(slot)
		} else { // the numbers are ascending
			slots[i] = uint32(slot)
		}
	}
	g.slots.setAll(slots)
	if g.order != nil {
		ordered = g.order.applyAll(g.codes)
	} else {
		ordered = g.codes
	}
	if g.cells != nil {
		entries := make([]uint32, n)
		if err := g.sortBySubstring(ctx, entries, ordered, g.codes, g.numbers); err != nil {
			return nil, err
		}
		g.tables[0].slots.setAll(entries)
	}
	if bare {
		g.tables = g.tables[:1]
		return g, nil
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(workers, split.Len()) {
		wg.Go(func() {
			for j := int(next.Add(1)) - 1; j < split.Len() && ctx.Err() == nil; j = int(next.Add(1)) - 1 {
				g.fill(j, ordered)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

// sortBySubstring fills the buckets of the first substring: with the indexes of codes, in
// the order of their codes, so that find can search a full bucket by halves. ordered are
// the codes with their bits in the order of the segment.
func (g *segment) sortBySubstring(ctx context.Context, order []uint32, ordered, codes codec.Codes,
	numbers []uint32) error {
	offsets := g.tables[0].offsets
	sortIntoBuckets(offsets, order, func(i int) uint32 { return g.split.Of(ordered.At(i), 0) })
	for b := range len(offsets) - 1 {
		if b%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		bucket := order[offsets[b]:offsets[b+1]]
		if len(bucket) < 2 {
			continue
		}
		slices.SortFunc(bucket, func(i, k uint32) int {
			return slices.Compare(codes.At(int(i)), codes.At(int(k)))
		})
		for i := range len(bucket) - 1 {
			if slices.Equal(codes.At(int(bucket[i])), codes.At(int(bucket[i+1]))) {
				return fmt.Errorf("numbers %d and %d have the same code", numbers[bucket[i]], numbers[bucket[i+1]])
			}
		}
	}
	return nil
}

// maxTabledBits bounds the length of codes with tables. The nearest of longer codes are
// too far away for lookups to find them, and their tables would take more memory than
// the codes. A radius of a few bits would be fast by them, and takes a scan.
const maxTabledBits = 512

// Tabled reports whether codes of q bits can have tables of substrings.
func Tabled(q int) bool { return q <= maxTabledBits }

// allocate makes room for n codes' entries and numbers, in few pieces, so that as much
// of it as possible lies in huge pages.
func (g *segment) allocate(n int) {
	m := g.split.Len()
	if g.bare {
		m = 1
	}
	slots := int(g.last - g.first)
	if slots > sparseRange*n {
		slots, g.sparse = n, true
	}
	sum := n
	for j := range m {
		sum += 1<<g.split.Width(j) + 1
	}
	all := inHugePages(make([]uint32, sum))
	take := func(n int) []uint32 {
		part := all[:n:n]
		all = all[n:]
		return part
	}
	var partners []uint16
	var codes []uint64
	switch {
	case g.bare:
	case g.paired():
		partners = inHugePages(make([]uint16, m*n))
	default:
		codes = inHugePages(make([]uint64, (m-1)*n))
	}
	identity := 0 // tables whose entries are slots
	if g.cells == nil {
		identity = 1
	}
	tables := newPacked(m-1, n, n)
	if identity == 0 { // apart from the others, which goroutines fill while they read it
		tables = append(newPacked(1, n, n), tables...)
	}
	for j := range m {
		t := &g.tables[j]
		t.offsets = take(1<<g.split.Width(j) + 1)
		if j >= identity {
			t.slots = tables[j-identity]
		}
		if len(partners) > 0 {
			t.partners, partners = partners[:n:n], partners[n:]
		}
		if j > 0 && len(codes) > 0 {
			t.codes, codes = codes[:n:n], codes[n:]
		}
	}
	g.numbers, g.slots = take(n), newPacked(1, slots, n+1)[0]
}

// fill fills in the table of substring j. newSegment has done the buckets of the first
// table. ordered are the codes by slot, with their bits in the order of the segment.
func (g *segment) fill(j int, ordered codec.Codes) {
	t := &g.tables[j]
	var slots []uint32
	if j > 0 {
		slots = make([]uint32, g.len())
		sortIntoBuckets(t.offsets, slots, func(i int) uint32 { return g.split.Of(ordered.At(i), j) })
		t.slots.setAll(slots)
	}
	for i := range t.partners {
		slot := uint32(i)
		switch {
		case j > 0:
			slot = slots[i]
		case !t.slots.none():
			slot = t.slots.at(slot)
		}
		t.partners[i] = uint16(g.split.Of(ordered.At(int(slot)), j^1))
	}
	switch words := g.codes.Slice(0, g.len()); {
	case g.paired():
	case j == 0:
		t.codes = words
	default:
		for i, slot := range slots {
			t.codes[i] = words[slot]
		}
	}
}

// sortIntoBuckets writes the numbers 0, 1, ... to order, sorted by bucket and stable.
// It writes the start of each bucket to offsets, and the end of the last one. offsets
// must be zero.
func sortIntoBuckets(offsets, order []uint32, bucket func(i int) uint32) {
	for i := range order {
		offsets[bucket(i)+1]++
	}
	buckets := len(offsets) - 1
	for b := range buckets {
		offsets[b+1] += offsets[b]
	}
	next := slices.Clone(offsets[:buckets])
	for i := range order {
		b := bucket(i)
		order[next[b]] = uint32(i)
		next[b]++
	}
}

// TableBytes returns the memory in bytes that the tables of n codes of q bits take.
func TableBytes(q, n int) int {
	split := SplitFor(q, n)
	if !Tabled(q) {
		return 4 << split.Width(0)
	}
	sum := 0
	for j := range split.Len() {
		sum += 4 << split.Width(j)
	}
	slot, slots := packedWidth(n), split.Len()-1
	if !split.paired() {
		return sum + (8+slot)*n*slots
	}
	return sum + slot*n*slots + 2*n*split.Len()
}

func (g *segment) len() int { return g.codes.Len() }

// code returns the code with number n, or nil if it was dead when the segment was
// built.
func (g *segment) code(n uint32) codec.Code {
	if slot := g.slotOf(n); slot < g.len() {
		return g.codes.At(slot)
	}
	return nil
}

// slotOf returns the slot of the code with number n, or len() if there is none.
func (g *segment) slotOf(n uint32) int {
	if !g.sparse {
		return int(g.slots.at(n - g.first))
	}
	i, ok := sort.Find(g.slots.len(),
		func(i int) int { return cmp.Compare(n, g.numbers[g.slots.at(uint32(i))]) })
	if !ok {
		return g.len()
	}
	return int(g.slots.at(uint32(i)))
}

// all yields the numbers in ascending order, with their codes.
func (g *segment) all() iter.Seq2[uint32, codec.Code] {
	return func(yield func(uint32, codec.Code) bool) {
		for i := range g.slots.len() {
			slot := int(g.slots.at(uint32(i)))
			if slot < g.len() && !yield(g.numbers[slot], g.codes.At(slot)) {
				return
			}
		}
	}
}

// find returns the number of a code. It may be a code that no row carries any more.
func (g *segment) find(c codec.Code) (n uint32, ok bool) {
	t := &g.tables[0]
	b := g.split.Of(g.order.apply(make(codec.Code, 0, 8), c), 0)
	from, to := int(t.offsets[b]), int(t.offsets[b+1])
	at := from
	slot := func(entry int) int {
		if t.slots.none() {
			return entry
		}
		return int(t.slots.at(uint32(entry)))
	}
	for lo, hi := from, to; lo < hi; at = lo {
		mid := int(uint(lo+hi) / 2)
		if slices.Compare(g.codes.At(slot(mid)), c) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if at < to && slices.Equal(g.codes.At(slot(at)), c) {
		return g.numbers[slot(at)], true
	}
	return 0, false
}

// bytes returns the memory of the segment in bytes: of its codes and numbers, and of
// its tables.
func (g *segment) bytes() (codes, tables int) {
	n := g.len()
	codes = 8*n*codec.Words(g.codes.Bits()) + 4*n + g.slots.bytesOf()
	for j, t := range g.tables {
		slots := t.slots.bytesOf()
		if j == 0 { // for find, and so that codes can be in the order of their cells
			codes += slots
			slots = 0
		}
		tables += 4*len(t.offsets) + slots + 2*len(t.partners)
		if j > 0 {
			tables += 8 * len(t.codes)
		}
	}
	return codes, tables
}

// scanNearest scans for the collector of s.
func (g *segment) scanNearest(ctx context.Context, s *search) error {
	if s.table != nil {
		return s.scanNearest(ctx, g.codes, g.numbers, 0)
	}
	return g.scan(ctx, s, s.bound, s.takeMore)
}

// scan adds to s.found the codes within bound bits. If after is not nil, scan calls it
// when found has grown, and goes on with the bound that it returns.
func (g *segment) scan(ctx context.Context, s *search, bound int, after func() int) error {
	n := g.len()
	size := scanBlock
	if after != nil && bound == g.codes.Bits() {
		size = scanBlock / 32 // every code of the first block passes: keep it small
	}
	for from, block := 0, 0; from < n; from, block = from+size, block+1 {
		size = min(2*size, scanBlock)
		if block%64 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		to := min(from+size, n)
		near := s.nearsFor(to - from)
		found := codec.Within(near, s.query, g.codes.Slice(from, to), bound, uint32(from))
		for _, x := range near[:found] {
			s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[x.Position()]))
		}
		if after != nil && found > 0 {
			bound = after()
		}
	}
	s.explain.Scanned += n
	return nil
}
