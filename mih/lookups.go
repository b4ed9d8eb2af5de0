package mih

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// lookups is the state of a search for the best scores in one segment. It looks
// substrings up by their lack: the sum of the weights |z_b| of the bits in which they
// differ from those of the query. This is the pigeonhole principle with weights.
//
// For each substring j, let every value that lacks less than T_j have been looked up. A
// code that none of these values has brought lacks T_j or more in each substring j. The
// lack of a code is the sum of the lacks of its substrings, so this code lacks T_0 +
// T_1 + ... or more. Once that sum is above the bound, every code that lacks no more
// than the bound has been found, and the search is complete. It is also complete when
// some T_j is above the sum of all weights of substring j: then every code has been
// found.
//
// A bit with a small |z_b| costs little to flip, so a code may be far in bits and near
// in score. A search by growing Hamming radii would have to go to the largest distance
// at which any code can have a good score. On its way it would meet most of the codes
// that differ in bits that matter.
//
// Where substrings come in pairs, an entry of a bucket also holds the other substring
// of the pair, and the principle is applied twice, as in a search by distance
// (rings.go). A code in none of the buckets looked up for either substring lacks at
// least T_j in one and T_j' in the other. So all codes that lack less than T_j + T_j'
// in the pair have been found, and only these have to be read.
type lookups struct {
	thresh []int64       // T_j, for each substring
	bits   []weightedBit // of the current substring, smallest weight first
	below  int64         // look up the values that lack less than this
	from   int64         // take the codes whose group of substrings lacks at least this
	to     int64         // and less than this
	query  uint32        // value of the current substring of the query
	table  *bucketTable  // of the current substring

	// For a pair: the lack of the other substring, by its lower and its upper byte. An
	// entry whose other substring lacks less than least is left out, as the lookups of
	// that substring bring it.
	partner  uint32 // value of the other substring of the query
	partners [2][256]int64
	least    int64

	slots    []uint32 // found by the lookups of the current group
	probes   int      // values looked up
	entries  int      // entries in their buckets
	work     float64  // rough time so far, in nanoseconds
	mostWork float64  // work at which the search gives up
}

// weightedBit is a bit of a substring and its weight.
type weightedBit struct {
	weight int64
	mask   uint32
}

const (
	// Segments with fewer codes are scanned.
	worthLookups = 8192
	// Thresholds grow by one part in so many each time.
	widening = 2
	// Rough time of a value that is looked up, and of an entry, in nanoseconds.
	valueCost = 20
	otherCost = 5
)

// lookUp offers the codes of a segment that may be in the answer. It reports whether
// that is complete. With mayScan it gives up where a scan seems cheaper; the codes it
// has offered by then stay offered.
func (r *ranking) lookUp(ctx context.Context, s *search, g *segment,
	mayScan bool) (complete bool, err error) {
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
	sum := int64(0) // of all T_j
	threshold := r.by.total / int64(2*g.split.bits)
	for ; ; threshold += threshold/widening + 1 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for p := range g.groups() {
			if sum > r.bound {
				return true, nil
			}
			// A threshold of the bound divided by the number of substrings ends the
			// search.
			next := min(threshold, r.bound/int64(m)) + 1
			first, last := g.group(p), g.group(p+1)-1
			if next <= l.thresh[first] {
				continue
			}
			before := l.thresh[first]
			l.slots, l.below = l.slots[:0], next
			l.from, l.to = before*int64(last-first+1), next*int64(last-first+1)
			all := int64(0) // lack of a code that differs in all bits of the group
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

// lookUpAll looks up the values of substring j that lack less than l.below. It returns
// the lack of the value that differs from the query in all bits.
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

// lookUpWith looks up the values that differ from the query in the bits of mask and in
// some of the bits from l.bits[i] on. lack is the lack of mask. Weights ascend, so once
// one bit is too much all later ones are.
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

// lookUp takes the entries of the value that differs from the query in the bits of
// mask. lack is the lack of mask.
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

// take adds the slot of entry e to slots.
func (l *lookups) take(e uint32) {
	if !l.table.slots.none() {
		e = l.table.slots.at(e)
	}
	l.slots = append(l.slots, e)
}

// offered reports whether a slot of the current segment has been offered.
func (r *ranking) offered(slot uint32) bool {
	return int(slot/64) < len(r.seen) && r.seen[slot/64]>>(slot%64)&1 == 1
}

// offerSlots offers the codes in the slots that lookups have found, each code once.
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
