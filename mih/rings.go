package mih

import "slices"

// rings is the state of the lookups of one search in one segment. Ring a of a substring
// is the set of the values at distance exactly a from the substring of the query.
//
// The pigeonhole principle is applied twice. Substrings come in pairs. Let A rings of
// the first substring of a pair have been looked up, and B rings of the second. A code
// in none of these rings differs from the query in A or more bits of the first
// substring and in B or more bits of the second. So every code that differs in less
// than R = A+B bits of the pair is in one of these rings. Each entry of a bucket has
// the other substring of the pair beside it, so these codes are told from the rest
// without reading the code.
//
// Let all codes that differ in less than R_p bits of pair p have been found, for each
// p. Then a code that has not been found differs in R_0 + R_1 + ... bits or more. Each
// ring adds one to this sum, so radius r takes r+1 rings.
//
// Any ring will do: that is the general pigeonhole principle (Qin et al., "GPH:
// Similarity Search in Hamming Space", ICDE 2018). The cheapest ring comes next. Where
// codes are clustered or their bits are correlated, the buckets near a query in one
// substring may hold a hundred times as many codes as in another. It pays to leave the
// former alone and to go further in the latter.
//
// Codes of one word stand beside the entries themselves. There a group is one substring
// instead of a pair.
type rings struct {
	covered []int        // of each group p: R_p, once all codes that differ in less bits have been taken
	tables  []tableRings // of each substring
}

// tableRings are the rings of one substring.
type tableRings struct {
	done int // number of rings that are in use

	// The buckets of these rings that are not empty, and those of one more ring if
	// counted.
	from, to []uint32 // entries of each bucket
	rings    []ring   // by distance
	counted  bool     // the next ring has been looked up, but is not in use yet

	cost float64 // of the next ring, in nanoseconds; a guess unless counted
}

// A ring has the end of its buckets in from and to, and the number of its entries.
type ring struct{ end, entries int }

// Rough times of parts of a search, in nanoseconds. They decide which ring comes next.
// The time of a whole search is measured instead (costs.go).
const (
	lookupCost  = 12 // a bucket
	entryCost   = .2 // an entry of a bucket: a look at its partner
	compareCost = 4  // reading a code at a random place
	besideCost  = .6 // comparing a code that stands beside its entry
)

// candidateCost is the expected time per entry of a ring, in nanoseconds, before the
// partners have told how many codes must be compared.
const candidateCost = 1

// A ring is taken at once if its cost is at most guessedWell times the guess, or at
// most notWorthALook nanoseconds. Looking for a cheaper ring costs something too.
const (
	guessedWell   = 1.5
	notWorthALook = 600
)

// reset begins the search of a segment.
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

// guess sets the cost of the next ring of substring j, as if its buckets were as full
// as the mean.
func (t *tableRings) guess(g *segment, j int) {
	width := g.split.Width(j)
	mean := float64(g.len()) / float64(int(1)<<width)
	t.cost = choose(width, t.done) * (lookupCost + mean*candidateCost)
}

// count looks up the next ring of substring j: it finds the entries of its buckets.
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

// ring returns the buckets of ring a, which is in use, and the number of their entries.
func (t *tableRings) ring(a int) (from, to []uint32, entries int) {
	start, r := 0, t.rings[a]
	if a > 0 {
		start = t.rings[a-1].end
	}
	return t.from[start:r.end], t.to[start:r.end], r.entries
}

// lookUp takes the cheapest next ring of all substrings into use, and returns its
// substring. It counts that ring, and other rings that might be cheaper by the guess.
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

// target returns R of group p that the rings in use can cover.
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
