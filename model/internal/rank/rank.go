// Package rank measures rankings of a sample of items in memory, expected over all orders of ties.
package rank

import (
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

// A Tie is a group of rows at the same distance.
type Tie struct {
	Rows, Relevant int32
	// Rows and relevant rows that precede the next row of the tie in the ranking.
	Before, RelevantBefore int32
}

// Expectation returns the sum of the precisions at the relevant rows of the tie,
// expected over all orders of its rows (McSherry & Najork, "Computing information
// retrieval performance measures efficiently in the presence of tied scores", ECIR
// 2008). Let N rows and R relevant ones precede the tie, and m rows and r relevant ones
// be in it. Place N+i holds a relevant row with probability r/m. Then (i-1)(r-1)/(m-1)
// relevant rows are expected among the i-1 places before it:
//
//	sum_{i=1..m} r/m (R + 1 + (i-1) g) / (N+i),  g = (r-1)/(m-1)
//
// With i-1 = (N+i) - (N+1) the sum becomes differences of harmonic numbers.
func (t *Tie) Expectation(harmonic []float64) float64 {
	if t.Relevant == 0 {
		return 0
	}
	n, r0 := float64(t.Before), float64(t.RelevantBefore)
	m, r := float64(t.Rows), float64(t.Relevant)
	g := 0.0
	if t.Rows > 1 {
		g = (r - 1) / (m - 1)
	}
	h := harmonic[t.Before+t.Rows] - harmonic[t.Before]
	return r / m * ((r0+1-g*(n+1))*h + g*m)
}

// HarmonicNumbers returns 1 + 1/2 + ... + 1/i for i from 0 to n.
func HarmonicNumbers(n int) []float64 {
	h := make([]float64, n+1)
	for i := range n {
		h[i+1] = h[i] + 1/float64(i+1)
	}
	return h
}

// ExpectedPrecision returns the average precision of a ranking, expected over all
// orders of ties. The ties have their counts, and at least one row is relevant.
func ExpectedPrecision(ties []Tie, harmonic []float64) float64 {
	var rows, found int32
	var sum float64
	for i := range ties {
		t := &ties[i]
		if t.Rows == 0 {
			continue
		}
		t.Before, t.RelevantBefore = rows, found
		sum += t.Expectation(harmonic)
		rows += t.Rows
		found += t.Relevant
	}
	return sum / float64(found)
}

// RelevantSets numbers the label sets of sampled rows by first appearance. It returns
// the number of each row, the sets, and for each two of them whether they share a
// label.
func RelevantSets(setOf []uint32, all [][]int32, labels int) (of []int32, sets []uint32, relevant [][]bool) {
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

// MeanError returns the mean of x and its standard error.
func MeanError(x []float64) (mean, stderr float64) {
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

// Among ranks a set of labelled items for one another: each item is a query to the
// others. Their codes come from projections that have not learned from the items.
type Among struct {
	Bits, Words int       // bits of a code, and words of 64 bits
	Set         []int32   // by row: its label set
	Relevant    [][]bool  // by two label sets: whether they share a label
	Harmonic    []float64 // see database.harmonic
}

// Scratch is the memory of one goroutine.
type Scratch struct {
	z    []float64
	dist []uint16
	ties []Tie
}

// NewScratch returns the memory of so many goroutines.
func (a *Among) NewScratch(workers int) []Scratch {
	scratch := make([]Scratch, workers)
	for w := range scratch {
		scratch[w] = Scratch{z: make([]float64, a.Bits), dist: make([]uint16, len(a.Set)),
			ties: make([]Tie, a.Bits+1)}
	}
	return scratch
}

// Encode writes the codes that fusion how makes of the projections z. z has q numbers a
// row for each modality; has says which modalities a row has.
func (a *Among) Encode(codes []uint64, how Fusion, z [][]float32, has [][]bool, scratch []Scratch) {
	parallel.Chunks(len(scratch), len(a.Set), 64, func(worker, from, to int) {
		s := &scratch[worker]
		row := make([][]float64, len(z))
		room := make([]float64, len(z)*a.Bits)
		for i := from; i < to; i++ {
			for t := range z {
				row[t] = nil
				if has[t][i] {
					row[t] = room[t*a.Bits : (t+1)*a.Bits]
					for j, v := range z[t][i*a.Bits : (i+1)*a.Bits] {
						row[t][j] = float64(v)
					}
				}
			}
			how.Fuse(s.z, row)
			codec.PackSigns(codes[i*a.Words:(i+1)*a.Words], s.z)
		}
	})
}

// relevantOthers reports whether a row other than i is relevant to row i. counts has
// rows by label set; counted says whether row i is among them.
func (a *Among) relevantOthers(i int, counted bool, counts []int32) bool {
	for s, relevant := range a.Relevant[a.Set[i]] {
		n := counts[s]
		if counted && int32(s) == a.Set[i] {
			n--
		}
		if relevant && n > 0 {
			return true
		}
	}
	return false
}

// Ranking returns the rows of a database that has some rows, and the rows that may ask it: those with a
// relevant row in it. A row is no part of its own database.
func (a *Among) Ranking(asks, has []bool) (queries, database []int) {
	counts := make([]int32, len(a.Relevant))
	for i, in := range has {
		if in {
			database = append(database, i)
			counts[a.Set[i]]++
		}
	}
	for i, may := range asks {
		if may && a.relevantOthers(i, has[i], counts) {
			queries = append(queries, i)
		}
	}
	return queries, database
}

// Precisions returns the average precision of each query, a row, with its code of asked among the other rows
// of the database, on a goroutine for each scratch.
func (a *Among) Precisions(scratch []Scratch, queries []int, asked, codes []uint64,
	database []int) []float64 {
	precisions := make([]float64, len(queries))
	parallel.Chunks(len(scratch), len(queries), 16, func(worker, first, end int) {
		for k := first; k < end; k++ {
			i := queries[k]
			precisions[k] = a.precision(&scratch[worker], i, asked[i*a.Words:(i+1)*a.Words], codes, database)
		}
	})
	return precisions
}

// precision returns the average precision of row i with this code among the other rows
// of the database, expected over all orders of ties.
func (a *Among) precision(s *Scratch, i int, code, codes []uint64, database []int) float64 {
	clear(s.ties)
	relevant := a.Relevant[a.Set[i]]
	codec.Distances(s.dist, code, codes)
	for _, row := range database {
		if row == i {
			continue
		}
		t := &s.ties[s.dist[row]]
		t.Rows++
		if relevant[a.Set[row]] {
			t.Relevant++
		}
	}
	return ExpectedPrecision(s.ties, a.Harmonic)
}

// A Fusion is how codes are made from projections.
type Fusion struct {
	Weights []float64 // by modality
	Mean    []float64 // mean aim, which is subtracted; nil: nothing is
}

func isZero(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != 0 })
}

// Fuse writes the fused projection of an item to dst; see model.Model.Fuse.
func (f Fusion) Fuse(dst []float64, z [][]float64) (only int) {
	has, counts := 0, 0
	for t, x := range z {
		if isZero(x) {
			continue
		}
		has++
		if f.Weights[t] > 0 {
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
		w := f.Weights[t]
		if counts == 0 {
			w = 1
		}
		if w == 0 || isZero(x) {
			continue
		}
		total += w
		for j, v := range x {
			dst[j] += float64(w * v) // not fused: the same bits on all processors
		}
	}
	for j, h := range f.Mean {
		dst[j] -= float64(total * h)
	}
	return only
}
