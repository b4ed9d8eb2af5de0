package mih

import "slices"

// A search of a segment looks substrings up by rings: ring a of a substring is the
// set of the values at distance exactly a from that of the query.
//
// The pigeonhole principle is applied twice. Substrings come in pairs. Let A rings
// of the first substring of a pair have been looked up, and B of the second. A code
// that is in none of them differs from the query in A or more bits of the first and
// in B or more of the second: so the codes that differ in less than R = A+B bits of
// the pair are all in these rings, and as each entry of a bucket has the code's other
// substring of the pair beside it, they are told from the rest without a look at the
// code. If so all codes have been found that differ in less than R_p bits of pair p,
// for each p, then a code that has not been found differs in R_0 + R_1 + ... bits or
// more. Each ring, whichever, adds one to this sum: radius r takes r+1 of them.
//
// That it may be any is the general pigeonhole principle (Qin et al., "GPH:
// Similarity Search in Hamming Space", ICDE 2018). The cheapest comes next: where
// codes are clustered or their bits correlated, the buckets near a query in one
// substring may hold a hundred times as many codes as in another, and it pays to
// leave the former alone and to go further in the latter.
//
// Codes of one word are beside the entries themselves: there, a group is one
// substring instead of a pair.
type rings struct {
	covered []int // of each group: R, once what differs in less bits has been found
	tables  []tableRings
}

// tableRings are the rings of one substring.
type tableRings struct {
	done int // how many are in use

	// Those, and one more if counted: the buckets that are not empty.
	from, to []uint32 // where their entries begin and end
	rings    []ring
	counted  bool

	cost float64 // of the next one, in nanoseconds: a guess unless it is counted
}

// A ring knows where its buckets end among those of all rings.
type ring struct{ end, entries int }

// What makes up the time of a search, roughly, in nanoseconds. Which ring comes next
// is decided by it; what a search takes is measured (costs.go).
const (
	lookupCost  = 12
	entryCost   = .2 // of a bucket: a look at its partner
	compareCost = 4  // a code at a random place
	besideCost  = .6 // a code that is beside its entry
)

// candidateCost is what a ring is expected to cost for each of its entries, before
// the partners have told how many have to be compared.
const candidateCost = 1

// A ring is taken without a look at others if its cost is so many times what was
// guessed, and so many nanoseconds, at most: looking costs something too.
const (
	guessedWell   = 1.5
	notWorthALook = 600
)

// reset returns to where a search of a segment begins.
func (r *rings) reset(g *segment) {
	m := g.split.Len()
	r.covered = append(r.covered[:0], make([]int, g.groups())...)
	r.tables = slices.Grow(r.tables[:0], m)[:m] // with the memory of earlier searches
	for j := range r.tables {
		t := &r.tables[j]
		t.done, t.counted = 0, false
		t.from, t.to, t.rings = t.from[:0], t.to[:0], t.rings[:0]
		t.guess(g, j)
	}
}

// guess sets the cost of the next ring of substring j to that of buckets that are
// as full as the mean.
func (t *tableRings) guess(g *segment, j int) {
	width := g.split.Width(j)
	mean := float64(g.len()) / float64(int(1)<<width)
	t.cost = choose(width, t.done) * (lookupCost + mean*candidateCost)
}

// count looks up the next ring of substring j: where the entries of its buckets are.
func (t *tableRings) count(g *segment, s *search, j int) {
	width := g.split.Width(j)
	offsets, query := g.tables[j].offsets, s.substrings[j]
	lookups, entries := 0, 0
	for mask := firstMask(t.done); mask>>width == 0; mask = nextMask(mask) {
		bucket := query ^ uint32(mask)
		lookups++
		if from, to := offsets[bucket], offsets[bucket+1]; from < to {
			t.from, t.to = append(t.from, from), append(t.to, to)
			entries += int(to - from)
		}
	}
	t.rings = append(t.rings, ring{len(t.from), entries})
	t.counted = true
	t.cost = lookupCost*float64(lookups) + candidateCost*float64(entries)
	s.explain.Probes += lookups
}

// ring returns the buckets of a ring that is in use, and the number of entries.
func (t *tableRings) ring(a int) (from, to []uint32, entries int) {
	start, r := 0, t.rings[a]
	if a > 0 {
		start = t.rings[a-1].end
	}
	return t.from[start:r.end], t.to[start:r.end], r.entries
}

// lookUp looks up the cheapest ring of all, and returns its substring. It counts
// that ring, and others that according to the guess might be cheaper.
func (g *segment) lookUp(s *search) int {
	for {
		best := 0
		for j := range s.rings.tables {
			if s.rings.tables[j].cost < s.rings.tables[best].cost {
				best = j
			}
		}
		t := &s.rings.tables[best]
		guess := t.cost
		if !t.counted {
			t.count(g, s, best)
			if t.cost > max(guessedWell*guess, notWorthALook) {
				continue
			}
		}
		s.explain.Candidates += t.rings[t.done].entries
		t.done++
		t.counted = false
		t.guess(g, best)
		return best
	}
}

// target returns what the rings of group p that have been looked up can cover.
func (g *segment) target(s *search, p int) int {
	sum := 0
	for j := g.group(p); j < g.group(p+1); j++ {
		sum += s.rings.tables[j].done
	}
	return sum
}

// paired reports whether substrings come in pairs.
func (g *segment) paired() bool { return g.split.paired() }

// groups returns the number of groups of substrings.
func (g *segment) groups() int {
	if g.paired() {
		return g.split.Len() / 2
	}
	return g.split.Len()
}

// group returns the first substring of group p.
func (g *segment) group(p int) int {
	if g.paired() {
		return 2 * p
	}
	return p
}
