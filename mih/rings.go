package mih

import "github.com/fddhdb/fddhdb/codec"

// Rings are the order in which a search of a segment looks substrings up. Ring a
// of substring j is the set of its values at distance exactly a from that of the
// query. The rings of a substring are looked up from 0 outwards, those of
// different substrings in any order, which the general pigeonhole principle
// allows (Qin et al., "GPH: Similarity Search in Hamming Space", ICDE 2018): if
// t_j rings of each substring j have been looked up, a code that none of them has
// found differs from the query in t_j bits or more of every substring j, hence in
// t_0 + ... + t_(m-1) bits or more. So each ring, whichever, adds one bit to the
// radius within which everything has been found, and radius r takes r+1 of them.
//
// The cheapest comes next. Where codes are clustered or their bits correlated,
// the buckets near a query in one substring may hold a hundred times as many codes
// as those in another, and it pays to leave the former alone and to go further in
// the latter. [Split.step] is the fixed order that suits uniform codes.
type rings struct {
	done []int  // of each substring, how many have been looked up
	next []ring // of each substring, the one after those
}

// A ring waits to be looked up.
type ring struct {
	cost     float64  // in nanoseconds
	counted  bool     // the cost is that of its codes; else it is a guess
	from, to []uint32 // where the entries of its buckets begin and end, once counted
	entries  int
}

// Rough costs of a search, in nanoseconds; they decide which ring comes next,
// and how the measured time of several is shared out.
const (
	lookupCost      = 12
	candidateCost   = 3.5 // at a random place
	consecutiveCost = .6  // of one word, next to others
)

// A ring is taken without a look at others if its cost is so many times what was
// guessed, and so many nanoseconds, at most: looking costs something too.
const (
	guessedWell   = 1.5
	notWorthALook = 600
)

// reset returns to where a search of a segment begins.
func (r *rings) reset(g *segment) {
	m := g.split.Len()
	r.done = append(r.done[:0], make([]int, m)...)
	for len(r.next) < m {
		r.next = append(r.next, ring{})
	}
	r.next = r.next[:m]
	for j := range r.next {
		r.guess(g, j)
	}
}

// advance goes on to the next ring of substring j.
func (r *rings) advance(g *segment, j int) {
	r.done[j]++
	r.guess(g, j)
}

// guess sets the cost of the next ring of substring j to that of buckets that are
// as full as the mean.
func (r *rings) guess(g *segment, j int) {
	width := g.split.Width(j)
	mean := float64(g.len()) / float64(int(1)<<width)
	r.next[j].cost = choose(width, r.done[j]) * (lookupCost + mean*g.candidateCost(j))
	r.next[j].counted = false
}

func (g *segment) candidateCost(j int) float64 {
	if t := &g.tables[j]; t.slots != nil && t.codes == nil {
		return candidateCost
	}
	return consecutiveCost * float64(codec.Words(g.codes.Bits()))
}

// cheapest returns the substring whose next ring should be looked up, and counts
// that ring and others that according to the guess might be cheaper.
func (g *segment) cheapest(s *search) int {
	for {
		best := 0
		for j := range s.rings.next {
			if s.rings.next[j].cost < s.rings.next[best].cost {
				best = j
			}
		}
		next := &s.rings.next[best]
		if next.counted {
			return best
		}
		guess := next.cost
		if g.count(s, best); next.cost <= max(guessedWell*guess, notWorthALook) {
			return best
		}
	}
}

// count looks up the next ring of substring j: where the codes of its buckets are.
func (g *segment) count(s *search, j int) {
	next, width := &s.rings.next[j], g.split.Width(j)
	offsets, query := g.tables[j].offsets, s.substrings[j]
	next.counted, next.entries = true, 0
	next.from, next.to = next.from[:0], next.to[:0]
	lookups := 0
	for mask := firstMask(s.rings.done[j]); mask>>width == 0; mask = nextMask(mask) {
		bucket := query ^ uint32(mask)
		lookups++
		if from, to := offsets[bucket], offsets[bucket+1]; from < to {
			next.from, next.to = append(next.from, from), append(next.to, to)
			next.entries += int(to - from)
		}
	}
	s.explain.Probes += lookups
	next.cost = lookupCost*float64(lookups) + g.candidateCost(j)*float64(next.entries)
}
