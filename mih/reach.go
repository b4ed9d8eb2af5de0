package mih

import "math"

// reach estimates how far a k-NN search has to go from what it has found so far. A
// code at distance d has not been found by r+1 rings if it differs from the query in
// R_p bits or more of every group p of substrings, the sum of R_p being r+1; let them
// be about the same. If the d bits are any, each choice being as likely, the
// probability is
//
//	prod_p sum_{e >= R_p} C(w_p, e) x^e   at x^d, over C(q, d)
//
// w_p being the widths of the groups. What has been found at distance d, divided by
// the probability of finding it, is what there is at that distance.
type reach struct {
	found [][]float32 // found[r][d]: probability after r+1 rings
}

// maxReachBits bounds the work of making the table, which grows with the square
// of the length of the codes.
const maxReachBits = 512

func newReach(bits int, widths []int, radii int) reach {
	if bits > maxReachBits {
		return reach{}
	}
	t := reach{found: make([][]float32, radii)}
	chooseFrom := map[int][]float64{} // width -> the numbers of ways to choose from it
	for _, w := range widths {
		if chooseFrom[w] == nil {
			for e := range w + 1 {
				chooseFrom[w] = append(chooseFrom[w], choose(w, e))
			}
		}
	}
	for r := range t.found {
		// ways[d]: of d bits that differ, those with too many in each group.
		ways := make([]float64, 1, bits+1)
		ways[0] = 1
		for p := range widths {
			covered := (r + 1) / len(widths)
			if p < (r+1)%len(widths) {
				covered++
			}
			w := widths[p]
			from := chooseFrom[w]
			next := make([]float64, len(ways)+w)
			for d, x := range ways {
				if x == 0 {
					continue
				}
				for e := covered; e <= w; e++ {
					next[d+e] += x * from[e]
				}
			}
			ways = next
		}
		row := make([]float32, bits+1)
		for d := range row {
			row[d] = float32(1 - ways[d]/choose(bits, d))
		}
		t.found[r] = row
	}
	return t
}

// bound returns the distance within which there seem to be k results: histogram
// holds those found by r+1 rings, and before all those of other codes,
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
