package mih

import "math"

// reach estimates how far a k-NN search has to go from what its first steps have
// found. A code at distance d is missed by the steps 0 to r if it differs from
// the query in more bits of every substring than they have flipped there. If the
// d bits are any, each choice being as likely, the probability is
//
//	prod_j sum_{e > a_j} C(w_j, e) x^e   at x^d, over C(q, d)
//
// w_j being the widths of the substrings and a_j the bits flipped so far. What
// has been found at distance d, divided by the probability of finding it, is what
// there is at that distance.
type reach struct {
	found [][]float32 // found[r][d]: probability after the steps 0 to r
}

// maxReachBits bounds the work of making the table, which grows with the square
// of the length of the codes.
const maxReachBits = 512

func newReach(s Split, steps int) reach {
	if s.bits > maxReachBits {
		return reach{}
	}
	t := reach{found: make([][]float32, steps)}
	for r := range t.found {
		// ways[d]: of d bits that differ, those with too many in each substring.
		ways := make([]float64, 1, s.bits+1)
		ways[0] = 1
		for j := range s.Len() {
			a := r / s.Len()
			if j > r%s.Len() {
				a--
			}
			w := s.Width(j)
			next := make([]float64, len(ways)+w)
			for d, x := range ways {
				if x == 0 {
					continue
				}
				for e := max(a+1, 0); e <= w; e++ {
					next[d+e] += x * choose(w, e)
				}
			}
			ways = next
		}
		row := make([]float32, s.bits+1)
		for d := range row {
			row[d] = float32(1 - ways[d]/choose(s.bits, d))
		}
		t.found[r] = row
	}
	return t
}

// bound returns the distance within which there seem to be k results: histogram
// holds those found by the steps 0 to r, and before all those of other codes,
// which are complete. It is at most limit.
func (t *reach) bound(r, k, limit int, histogram, before []int) int {
	if r >= len(t.found) {
		return limit
	}
	sum := 0.0
	for d := range limit {
		if n := histogram[d] - before[d]; n > 0 {
			sum += float64(n) / math.Max(float64(t.found[r][d]), 1e-9)
		}
		if sum += float64(before[d]); sum >= float64(k) {
			return d
		}
	}
	return limit
}
