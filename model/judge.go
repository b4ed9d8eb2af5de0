package model

import (
	"math"

	"github.com/fddhdb/fddhdb/codec"
)

// judgePairs bounds the pairs of a query and a label set that a judgement compares: a
// fraction of a second. With many label sets it leaves out queries.
const judgePairs = 4 << 20

// A judge measures the codes that a projection gives sampled items with known labels.
// Each item is a query. The database has the codes of the labels of all sampled items
// in other folds. A label set has one code, so the database is a list of label sets
// with counts.
type judge struct {
	q, words int        // bits of a code, and words of 64 bits
	set      []int32    // by row of the sample: its label set, 0 to sets-1
	codes    []uint64   // by label set
	counts   [][]int32  // by fold and label set: the rows in other folds
	relevant [][]bool   // by two label sets: whether they share a label
	queries  [][]int32  // by fold: its rows that are relevant to others
	harmonic []float64  // see database.harmonic
	scratch  []judgment // by worker
}

// judgment is the memory of one goroutine.
type judgment struct {
	dist []uint16
	ties []tie // by distance; empty between judgements
}

// newJudge takes the label set of each row of the sample, the label sets, and the code
// of each set. Fold f is the rows from bounds[f] to bounds[f+1].
func newJudge(setOf []uint32, all *labelSets, code func(set uint32) codec.Code, bits int, bounds []int) *judge {
	j := &judge{q: bits, words: codec.Words(bits), harmonic: harmonicNumbers(len(setOf))}
	var sets []uint32
	j.set, sets, j.relevant = relevantSets(setOf, all)
	for _, s := range sets {
		j.codes = append(j.codes, code(s)...)
	}
	folds := len(bounds) - 1
	limit := max(1, judgePairs/len(sets)/folds)
	for f := range folds {
		counts := make([]int32, len(sets))
		for row, s := range j.set {
			if row < bounds[f] || row >= bounds[f+1] {
				counts[s]++
			}
		}
		var queries []int32
		for row := bounds[f]; row < bounds[f+1] && len(queries) < limit; row++ {
			for s, relevant := range j.relevant[j.set[row]] {
				if relevant && counts[s] > 0 {
					queries = append(queries, int32(row))
					break
				}
			}
		}
		j.counts, j.queries = append(j.counts, counts), append(j.queries, queries)
	}
	for range workerCount() {
		j.scratch = append(j.scratch, judgment{dist: make([]uint16, len(sets)), ties: make([]tie, bits+1)})
	}
	return j
}

// harmonicNumbers returns 1 + 1/2 + ... + 1/i for i from 0 to n.
func harmonicNumbers(n int) []float64 {
	h := make([]float64, n+1)
	for i := range n {
		h[i+1] = h[i] + 1/float64(i+1)
	}
	return h
}

// relevantSets numbers the label sets of sampled rows by first appearance. It returns
// the number of each row, the sets, and for each two of them whether they share a
// label.
func relevantSets(setOf []uint32, all *labelSets) (of []int32, sets []uint32, relevant [][]bool) {
	number := map[uint32]int32{}
	having := make([][]int32, len(all.labels)) // by label: the sets that hold it
	for _, s := range setOf {
		n, ok := number[s]
		if !ok {
			n = int32(len(sets))
			number[s] = n
			sets = append(sets, s)
			for _, l := range all.sets[s] {
				having[l] = append(having[l], n)
			}
		}
		of = append(of, n)
	}
	for _, s := range sets {
		row := make([]bool, len(sets))
		for _, l := range all.sets[s] {
			for _, other := range having[l] {
				row[other] = true
			}
		}
		relevant = append(relevant, row)
	}
	return of, sets, relevant
}

// queryCount returns the number of queries of a judgement.
func (j *judge) queryCount() (n int) {
	for _, q := range j.queries {
		n += len(q)
	}
	return n
}

// precision returns the average precision of a row of a fold as a query with this code,
// expected over all orders of ties.
func (j *judge) precision(worker, fold int, row int32, code codec.Code) float64 {
	s := &j.scratch[worker]
	codec.Distances(s.dist, code, j.codes)
	counts, relevant := j.counts[fold], j.relevant[j.set[row]]
	nearest, farthest := len(s.ties), 0
	for set, d := range s.dist {
		t := &s.ties[d]
		t.rows += counts[set]
		if relevant[set] {
			t.relevant += counts[set]
		}
		nearest, farthest = min(nearest, int(d)), max(farthest, int(d))
	}
	ties := s.ties[nearest : farthest+1]
	defer clear(ties)
	return expectedPrecision(ties, j.harmonic)
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
