package mih

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// cover adds to s.found the codes within bound bits that the rings in use bring and
// that are not covered yet. If after is not nil, cover calls it now and then when found
// has grown, and goes on with the bound that it returns. With mayScan it gives up
// before the first comparison if a scan is faster than all comparisons; it reports
// whether it did.
func (g *segment) cover(ctx context.Context, s *search, bound int, after func() int,
	mayScan bool) (abandoned bool, err error) {
	s.entries, s.ends = s.entries[:0], s.ends[:0]
	work := 0.0
	for p, covered := range s.rings.covered {
		target := g.target(s, p)
		if g.paired() && covered < target {
			g.collect(s, 2*p, covered, target-1)
			g.collect(s, 2*p+1, covered, target-1)
			work = compareCost * float64(len(s.entries)) // the partners have been looked at
		} else if !g.paired() {
			for a := covered; a < target; a++ {
				work += besideCost * float64(s.rings.tables[p].rings[a].entries)
			}
		}
		s.ends = append(s.ends, len(s.entries))
		if mayScan && g.costs.pace*work > afterLookups*g.costs.scan {
			return true, nil
		}
	}
	begin := 0
	for p := range s.rings.covered {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		target := g.target(s, p)
		if g.paired() {
			bound = g.verify(s, s.entries[begin:s.ends[p]], bound, after)
			begin = s.ends[p]
			s.rings.covered[p] = target
			continue
		}
		for ; s.rings.covered[p] < target; s.rings.covered[p]++ {
			bound = g.verifyRing(s, p, s.rings.covered[p], bound, after)
		}
	}
	return false, nil
}

// collect appends to s.entries the slots of codes that the rings of substring j bring
// and that differ from the query in least to most bits of the pair. For the second
// substring of a pair it leaves out codes that the rings of the first one bring.
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
		n += codec.Partners(s.entries[n:n+room], uint16(s.substrings[partner]), t.partners, nil, from, to,
			atLeast, atMost)
		if !t.slots.none() {
			t.slots.replace(s.entries[len(s.entries):n])
		}
		s.entries = s.entries[:n]
	}
}

// firstPiece is the number of codes that a search without a bound compares before it
// asks for one. The next piece is twice as large. Every code of the first piece passes.
const firstPiece = 32

// verifyRing compares the codes of ring a of substring j, which stand beside their
// entries. It returns the last bound.
func (g *segment) verifyRing(s *search, j, a, bound int, after func() int) int {
	t := &g.tables[j]
	from, to, entries := s.rings.tables[j].ring(a)
	s.explain.Compared += entries
	for piece := firstPiece; len(from) > 0; piece *= 2 {
		if after == nil || bound < g.codes.Bits() {
			piece = entries
		}
		n, size := 0, 0
		for n < len(from) && size < piece {
			size += int(to[n] - from[n])
			n++
		}
		rest := uint32(max(size-piece, 0)) // of the last bucket, for the next piece
		end := to[n-1]
		to[n-1] -= rest
		near := s.nearsFor(size + 8)
		found := codec.WithinRanges(near, s.query, t.codes, from[:n], to[:n], bound)
		for _, x := range near[:found] {
			slot := x.Position()
			if !t.slots.none() {
				slot = t.slots.at(slot)
			}
			if g.firstFound(s, slot) {
				s.found = append(s.found, codec.NearOf(x.Distance(), g.numbers[slot]))
			}
		}
		if after != nil && found > 0 {
			bound = after()
		}
		if to[n-1] = end; rest > 0 {
			n--
			from[n] = end - rest
		}
		from, to = from[n:], to[n:]
	}
	return bound
}

// verify compares the codes in slots, and returns the last bound.
func (g *segment) verify(s *search, slots []uint32, bound int, after func() int) int {
	s.explain.Compared += len(slots)
	for piece := firstPiece; len(slots) > 0; piece *= 2 {
		if after == nil || bound < g.codes.Bits() {
			piece = len(slots)
		}
		part := slots[:min(piece, len(slots))]
		slots = slots[len(part):]
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

// firstFound reports whether no covered group has found the code before.
func (g *segment) firstFound(s *search, slot uint32) bool {
	code := g.codes.At(int(slot))
	for p := range g.masks {
		if covered := s.rings.covered[p]; covered > 0 && g.masks[p].distance(code, s.query) < covered {
			return false
		}
	}
	return true
}
