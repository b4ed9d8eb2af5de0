package mih

import (
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// cover adds to what s has found the codes within bound bits that the rings that
// have been looked up bring of group p, and that no group has brought before. after,
// if not nil, is called now and then when that has grown, and returns the bound for
// what follows.
func (g *segment) cover(s *search, p, bound int, after func() int) int {
	covered, target := &s.rings.covered[p], g.target(s, p)
	switch {
	case *covered == target:
	case g.paired():
		s.entries = s.entries[:0]
		g.collect(s, 2*p, *covered, target-1)
		g.collect(s, 2*p+1, *covered, target-1)
		bound = g.verify(s, bound, after)
		*covered = target
	default:
		for ; *covered < target; *covered++ {
			bound = g.verifyRing(s, p, *covered, bound, after)
		}
	}
	return bound
}

// collect appends to the entries of s the slots of the codes that the rings of
// substring j bring, but not those of the substring before it in its pair, and that
// differ from the query in least to most bits of the pair.
func (g *segment) collect(s *search, j, least, most int) {
	t, partner, found := &g.tables[j], j^1, 0
	if partner < j {
		found = s.rings.tables[partner].done
	}
	for a := range s.rings.tables[j].done {
		from, to, entries := s.rings.tables[j].ring(a)
		atLeast, atMost := max(least-a, found), min(most-a, g.split.Width(partner))
		if atLeast > atMost || entries == 0 {
			continue
		}
		n, room := len(s.entries), entries+codec.PartnersRoom
		s.entries = slices.Grow(s.entries, room)
		n += codec.Partners(s.entries[n:n+room], uint16(s.substrings[partner]), t.partners, t.slots, from, to, atLeast, atMost)
		s.entries = s.entries[:n]
	}
}

// A search that has no bound yet looks at that many codes, and then at twice as
// many each time, before it asks for one: all of the first come through.
const firstPiece = 32

// verifyRing compares the codes of ring a of substring j of a table that has them
// beside its entries.
func (g *segment) verifyRing(s *search, j, a, bound int, after func() int) int {
	t := &g.tables[j]
	from, to, entries := s.rings.tables[j].ring(a)
	s.explain.Compared += entries
	for len(from) > 0 {
		n, size := 0, 0
		for n < len(from) && (after == nil || bound < g.codes.Bits() || size < firstPiece) {
			size += int(to[n] - from[n])
			n++
		}
		near := s.nearsFor(size + 8)
		found := codec.WithinRanges(near, s.query, t.codes, from[:n], to[:n], bound)
		for _, x := range near[:found] {
			slot := x.Position()
			if t.slots != nil {
				slot = t.slots[slot]
			}
			if g.firstFound(s, slot) {
				s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[slot]))
			}
		}
		if after != nil && found > 0 {
			bound = after()
		}
		from, to = from[n:], to[n:]
	}
	return bound
}

// verify compares the codes in the slots that s has collected.
func (g *segment) verify(s *search, bound int, after func() int) int {
	s.explain.Compared += len(s.entries)
	for piece, rest := firstPiece, s.entries; len(rest) > 0; piece *= 2 {
		if after == nil || bound < g.codes.Bits() {
			piece = len(rest)
		}
		part := rest[:min(piece, len(rest))]
		rest = rest[len(part):]
		near := s.nearsFor(len(part))
		found := codec.WithinAt(near, s.query, g.codes.Slice(0, g.len()), part, bound)
		for _, x := range near[:found] {
			if slot := x.Position(); g.firstFound(s, slot) {
				s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[slot]))
			}
		}
		if after != nil && found > 0 {
			bound = after()
		}
	}
	return bound
}

// firstFound reports whether no group has found a code before, as far as they are
// covered.
func (g *segment) firstFound(s *search, slot uint32) bool {
	code, masks := g.codes.At(int(slot)), g.masks
	switch len(code) {
	case 1:
		differ := code[0] ^ s.query[0]
		for p, covered := range s.rings.covered {
			if bits.OnesCount64(differ&masks[p]) < covered {
				return false
			}
		}
	case 2:
		differ0, differ1 := code[0]^s.query[0], code[1]^s.query[1]
		for p, covered := range s.rings.covered {
			if bits.OnesCount64(differ0&masks[2*p])+bits.OnesCount64(differ1&masks[2*p+1]) < covered {
				return false
			}
		}
	default:
		for p, covered := range s.rings.covered {
			d := 0
			for w, m := range masks[p*len(code):][:len(code)] {
				d += bits.OnesCount64((code[w] ^ s.query[w]) & m)
			}
			if d < covered {
				return false
			}
		}
	}
	return true
}
