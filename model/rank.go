package model

import (
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// A tie is a group of rows at the same distance.
type tie struct {
	rows, relevant int32
	// Rows and relevant rows that precede the next row of the tie in the ranking.
	before, relevantBefore int32
}

// expectation returns the sum of the precisions at the relevant rows of the tie,
// expected over all orders of its rows (McSherry & Najork, "Computing information
// retrieval performance measures efficiently in the presence of tied scores", ECIR
// 2008). Let N rows and R relevant ones precede the tie, and m rows and r relevant ones
// be in it. Place N+i holds a relevant row with probability r/m. Then (i-1)(r-1)/(m-1)
// relevant rows are expected among the i-1 places before it:
//
//	sum_{i=1..m} r/m (R + 1 + (i-1) g) / (N+i),  g = (r-1)/(m-1)
//
// With i-1 = (N+i) - (N+1) the sum becomes differences of harmonic numbers.
func (t *tie) expectation(harmonic []float64) float64 {
	if t.relevant == 0 {
		return 0
	}
	n, r0 := float64(t.before), float64(t.relevantBefore)
	m, r := float64(t.rows), float64(t.relevant)
	g := 0.0
	if t.rows > 1 {
		g = (r - 1) / (m - 1)
	}
	h := harmonic[t.before+t.rows] - harmonic[t.before]
	return r / m * ((r0+1-g*(n+1))*h + g*m)
}

// harmonicNumbers returns 1 + 1/2 + ... + 1/i for i from 0 to n.
func harmonicNumbers(n int) []float64 {
	h := make([]float64, n+1)
	for i := range n {
		h[i+1] = h[i] + 1/float64(i+1)
	}
	return h
}

// expectedPrecision returns the average precision of a ranking, expected over all
// orders of ties. The ties have their counts, and at least one row is relevant.
func expectedPrecision(ties []tie, harmonic []float64) float64 {
	var rows, found int32
	var sum float64
	for i := range ties {
		t := &ties[i]
		if t.rows == 0 {
			continue
		}
		t.before, t.relevantBefore = rows, found
		sum += t.expectation(harmonic)
		rows += t.rows
		found += t.relevant
	}
	return sum / float64(found)
}

// relevantSets numbers the label sets of sampled rows by first appearance. It returns
// the number of each row, the sets, and for each two of them whether they share a
// label.
func relevantSets(setOf []uint32, all [][]int32, labels int) (of []int32, sets []uint32, relevant [][]bool) {
	number := map[uint32]int32{}
	having := make([][]int32, labels) // by label: the sets that hold it
	for _, s := range setOf {
		n, ok := number[s]
		if !ok {
			n = int32(len(sets))
			number[s] = n
			sets = append(sets, s)
			for _, l := range all[s] {
				having[l] = append(having[l], n)
			}
		}
		of = append(of, n)
	}
	for _, s := range sets {
		row := make([]bool, len(sets))
		for _, l := range all[s] {
			for _, other := range having[l] {
				row[other] = true
			}
		}
		relevant = append(relevant, row)
	}
	return of, sets, relevant
}

// meanError returns the mean of x and its standard error.
func meanError(x []float64) (mean, stderr float64) {
	for _, v := range x {
		mean += v
	}
	n := float64(len(x))
	mean /= n
	for _, v := range x {
		stderr += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(stderr / n / max(n-1, 1))
}

// among ranks a set of labelled items for one another: each item is a query to the
// others. Their codes come from projections that have not learned from the items.
type among struct {
	q, words int       // bits of a code, and words of 64 bits
	mean     []float64 // mean aim; see Model.Fuse
	set      []int32   // by row: its label set
	relevant [][]bool  // by two label sets: whether they share a label
	harmonic []float64 // see database.harmonic
}

// amongScratch is the memory of one goroutine.
type amongScratch struct {
	z    []float64
	dist []uint16
	ties []tie
}

// scratch returns the memory of so many goroutines.
func (a *among) scratch(workers int) []amongScratch {
	scratch := make([]amongScratch, workers)
	for w := range scratch {
		scratch[w] = amongScratch{z: make([]float64, a.q), dist: make([]uint16, len(a.set)), ties: make([]tie, a.q+1)}
	}
	return scratch
}

// encode writes the codes that fusion how makes of the projections z. z has q numbers a
// row for each modality; has says which modalities a row has.
func (a *among) encode(codes []uint64, how fusion, z [][]float32, has [][]bool, scratch []amongScratch) {
	chunks(len(scratch), len(a.set), 64, func(worker, from, to int) {
		s := &scratch[worker]
		row := make([][]float64, len(z))
		room := make([]float64, len(z)*a.q)
		for i := from; i < to; i++ {
			for t := range z {
				row[t] = nil
				if has[t][i] {
					row[t] = room[t*a.q : (t+1)*a.q]
					for j, v := range z[t][i*a.q : (i+1)*a.q] {
						row[t][j] = float64(v)
					}
				}
			}
			how.fuse(s.z, a.mean, row)
			codec.PackSigns(codes[i*a.words:(i+1)*a.words], s.z)
		}
	})
}

// relevantOthers reports whether a row other than i is relevant to row i. counts has
// rows by label set; counted says whether row i is among them.
func (a *among) relevantOthers(i int, counted bool, counts []int32) bool {
	for s, relevant := range a.relevant[a.set[i]] {
		n := counts[s]
		if counted && int32(s) == a.set[i] {
			n--
		}
		if relevant && n > 0 {
			return true
		}
	}
	return false
}

// precision returns the average precision of row i with this code among the other rows
// of the database, expected over all orders of ties.
func (a *among) precision(s *amongScratch, i int, code, codes []uint64, database []int) float64 {
	clear(s.ties)
	relevant := a.relevant[a.set[i]]
	codec.Distances(s.dist, code, codes)
	for _, row := range database {
		if row == i {
			continue
		}
		t := &s.ties[s.dist[row]]
		t.rows++
		if relevant[a.set[row]] {
			t.relevant++
		}
	}
	return expectedPrecision(s.ties, a.harmonic)
}

// A fusion is how codes are made from projections.
type fusion struct {
	weights []float64 // by modality
	centre  float64   // share of the mean aim that is subtracted
}

func isZero(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
}

// fuse writes the fused projection of an item to dst, with the mean aim; see model.Model.Fuse.
func (f fusion) fuse(dst, mean []float64, z [][]float64) (only int) {
	has, counts := 0, 0
	for t, x := range z {
		if isZero(x) {
			continue
		}
		has++
		if f.weights[t] > 0 {
			counts++
			only = t
		}
	}
	if counts != 1 || has == 1 {
		only = -1
	}
	clear(dst)
	total := 0.0
	for t, x := range z {
		w := f.weights[t]
		if counts == 0 {
			w = 1
		}
		if w == 0 || isZero(x) {
			continue
		}
		total += w
		for j, v := range x {
			dst[j] += w * v
		}
	}
	if f.centre != 0 {
		for j, h := range mean {
			dst[j] -= total * f.centre * h
		}
	}
	return only
}
