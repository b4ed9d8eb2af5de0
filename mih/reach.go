package mih

import "math"

// reach estimates the radius at which a k-NN search will end, from what it has found so
// far.
//
// Let R_p be the number of bits covered in group p of substrings after r+1 rings. The
// sum of the R_p is r+1, and they are taken to be about the same. A code at distance d
// has not been found if it differs from the query in R_p bits or more of every group p.
// If each choice of the d bits is as likely, the probability of that is
//
//	prod_p sum_{e >= R_p} C(w_p, e) x^e   at x^d, over C(q, d)
//
// where w_p are the widths of the groups. The number of codes found at distance d,
// divided by the probability of finding one, estimates the number of codes at that
// distance.
type reach struct {
	found [][]float32 // found[r][d]: probability of finding a code at distance d after r+1 rings
}

// maxReachBits bounds the work of making the table, which grows with the square of the
// length of the codes. There is no table for longer codes.
const maxReachBits = 512

// newReach returns the table for codes of so many bits, groups of these widths, and as
// many radii.
func newReach(bits int, widths []int, radii int) reach {
	if bits > maxReachBits {
		return reach{}
	}
	t := reach{found: make([][]float32, radii)}
	chooseFrom := map[int][]float64{} // width -> number of ways to choose e of width bits
	for _, w := range widths {
		if chooseFrom[w] == nil {
			for e := range w + 1 {
				chooseFrom[w] = append(chooseFrom[w], choose(w, e))
			}
		}
	}
	for r := range t.found {
		// ways[d]: number of choices of d bits with R_p bits or more in each group.
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

// bound returns the distance within which there seem to be k results, at most limit.
// histogram holds the weights found so far by distance, r+1 rings into this segment.
// before is the part of it that other segments have brought, and needs no estimate.
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
