package mih

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// A search for the best scores looks substrings up by what they lack: the sum of the
// weights |z_b| of the bits in which they differ from those of the query. This is
// the pigeonhole principle with weights.
//
// Let all values of substring j have been looked up that lack less than T_j, for
// each j. A code that none of them has brought lacks T_j or more in each substring,
// and as what a code lacks is the sum of what its substrings lack, T_0 + T_1 + ... or
// more. So once that sum is above the bound, all codes that lack no more than the
// bound have been found, and the search is complete. It is too when some T_j is above
// all the weights of its substring together: then every code has been found.
//
// A |z_b| that is small costs little to flip: a code may be far in bits and near
// in score. So a search by growing Hamming radii would have to go to the largest
// distance at which anything can have a good score, with the bits that matter
// least, and meets on its way most of what differs in bits that matter.
//
// Where substrings come in pairs, the entries of a bucket have the other substring
// of the pair beside them, and the principle is applied twice, as in a search by
// distance (rings.go): a code that is in none of the buckets of either lacks T_j of
// one and T_j' of the other, or more, so all codes have been found that lack less
// than T_j + T_j' of the pair; and only these need be looked at.
type lookups struct {
	thresh []int64       // T_j
	bits   []weightedBit // of the substring in hand, the smallest weight first
	below  int64         // look up the values that lack less than this,
	from   int64         // and take the codes whose group of substrings lacks so much
	to     int64         // to less than that
	query  uint32        // value of the substring of the query
	table  *bucketTable

	// What the other substring of the pair lacks, by its lower and its upper byte,
	// and the least of it: what lacks less, that substring brings.
	partner  uint32 // of the query
	partners [2][256]int64
	least    int64

	slots    []uint32 // what has been found
	probes   int
	entries  int
	work     float64 // in nanoseconds, roughly
	mostWork float64 // where more is needed, it ends
}

// weightedBit is a bit of a substring.
type weightedBit struct {
	weight int64
	mask   uint32
}

const (
	// Segments of so few codes are scanned.
	worthLookups = 8192
	// Thresholds grow by one part in so many, each time.
	widening = 2
	// What a value that is looked up takes, and an entry, in nanoseconds.
	valueCost = 20
	otherCost = 5
)

// lookUp offers the codes of a segment that may be in the answer, and reports
// whether these are complete; with mayScan it gives up where a scan seems to be
// cheaper.
func (r *ranking) lookUp(ctx context.Context, s *search, g *segment, mayScan bool) (complete bool, err error) {
	s.enter(g)
	l, m := &r.lookup, g.split.Len()
	r.seen = slices.Grow(r.seen[:0], (g.len()+63)/64)[:(g.len()+63)/64]
	clear(r.seen)
	l.thresh = append(l.thresh[:0], make([]int64, m)...)
	l.probes, l.entries, l.work, l.mostWork = 0, 0, 0, math.Inf(1)
	if mayScan {
		l.mostWork = wordCost * float64(len(g.codes.Slice(0, g.len())))
	}
	defer func() {
		s.explain.Probes += l.probes
		s.explain.Candidates += l.entries
	}()
	sum := int64(0) // of T_j
	threshold := r.by.total / int64(2*g.split.bits)
	for ; ; threshold += threshold/widening + 1 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for p := range g.groups() {
			if sum > r.bound {
				return true, nil
			}
			// The bound, shared out among all, ends the search at once.
			next := min(threshold, r.bound/int64(m)) + 1
			first, last := g.group(p), g.group(p+1)-1
			if next <= l.thresh[first] {
				continue
			}
			before := l.thresh[first]
			l.slots, l.below = l.slots[:0], next
			l.from, l.to = before*int64(last-first+1), next*int64(last-first+1)
			all := int64(0) // what lacks everything of the group
			for j := first; j <= last; j++ {
				all += l.lookUpAll(g, s, r.by, j)
				l.thresh[j] = next
				sum += next - before
			}
			if l.work > l.mostWork {
				return false, nil
			}
			s.explain.Compared += len(l.slots)
			r.offerSlots(g)
			if all < l.to {
				return true, nil
			}
		}
	}
}

// lookUpAll looks up the values of substring j that lack less than below. It
// returns what the value lacks that differs in all bits.
func (l *lookups) lookUpAll(g *segment, s *search, by *Scorer, j int) (all int64) {
	weight := func(k int) int64 {
		if g.order != nil {
			k = int(g.order[k])
		}
		return by.weights[k]
	}
	l.table, l.query, l.bits = &g.tables[j], s.substrings[j], l.bits[:0]
	start := g.split.starts[j]
	for k := range g.split.Width(j) {
		l.bits = append(l.bits, weightedBit{weight(start + k), 1 << k})
		all += weight(start + k)
	}
	slices.SortFunc(l.bits, func(a, b weightedBit) int { return cmp.Compare(a.weight, b.weight) })
	if g.paired() {
		other := j ^ 1
		l.partner, l.least = s.substrings[other], 0
		if other < j {
			l.least = l.thresh[other]
		}
		start, width := g.split.starts[other], g.split.Width(other)
		for half := range l.partners {
			table := &l.partners[half]
			table[0] = 0
			for differ := 1; differ < 256; differ++ {
				table[differ] = table[differ&(differ-1)]
				if k := 8*half + bits.TrailingZeros8(uint8(differ)); k < width {
					table[differ] += weight(start + k)
				}
			}
		}
	}
	l.lookUp(0, 0)
	l.lookUpWith(0, 0, 0)
	return all
}

// lookUpWith looks up the values that differ in the bits of mask, which together
// lack so much, and in some of the bits from number i on. As weights ascend, no
// further bit can be flipped where one makes it too much.
func (l *lookups) lookUpWith(i int, mask uint32, lack int64) {
	for ; i < len(l.bits); i++ {
		sum := lack + l.bits[i].weight
		if sum >= l.below || l.work > l.mostWork {
			return
		}
		with := mask | l.bits[i].mask
		l.lookUp(with, sum)
		l.lookUpWith(i+1, with, sum)
	}
}

// lookUp takes what the value has that differs in the bits of mask, and lacks so
// much.
func (l *lookups) lookUp(mask uint32, lack int64) {
	t, bucket := l.table, l.query^mask
	from, to := t.offsets[bucket], t.offsets[bucket+1]
	l.probes++
	l.entries += int(to - from)
	l.work += valueCost + otherCost*float64(to-from)
	if t.partners == nil {
		if lack < l.from {
			return // taken before
		}
		for e := from; e < to; e++ {
			l.take(e)
		}
		return
	}
	for i, partner := range t.partners[from:to] {
		differ := uint16(l.partner) ^ partner
		other := l.partners[0][differ&255] + l.partners[1][differ>>8]
		if pair := lack + other; pair >= l.from && pair < l.to && other >= l.least {
			l.take(from + uint32(i))
		}
	}
}

// take adds the slot of an entry.
func (l *lookups) take(e uint32) {
	if l.table.slots != nil {
		e = l.table.slots[e]
	}
	l.slots = append(l.slots, e)
}

// offered reports whether a slot of the segment in hand has been offered.
func (r *ranking) offered(slot uint32) bool {
	return int(slot/64) < len(r.seen) && r.seen[slot/64]>>(slot%64)&1 == 1
}

// offerSlots offers what lookups have brought, each code once.
func (r *ranking) offerSlots(g *segment) {
	for rest := r.lookup.slots; len(rest) > 0; {
		part := rest[:min(len(rest), scanBlock)]
		if r.bound == math.MaxInt64 {
			part = part[:min(len(part), firstPiece)]
		}
		rest = rest[len(part):]
		found := codec.WithinAt(r.nears, r.by.code, g.codes.Slice(0, g.len()), part, r.radius())
		for _, x := range r.nears[:found] {
			slot := x.Position()
			if code := g.codes.At(int(slot)); !r.refuses(code) && !r.offered(slot) {
				r.seen[slot/64] |= 1 << (slot % 64)
				r.offer(g.numbers[slot], x.Distance(), code)
			}
		}
	}
}
