package model

import (
	"github.com/fddhdb/fddhdb/codec"
)

// judgePairs bounds the pairs of a query and a label set that a judgement compares: a
// fraction of a second. With many label sets it leaves out queries.
const judgePairs = 4 << 20

// A judge measures the codes that projections give sampled items with known labels. Each
// item is a query to the codes of the labels of all others. A label set has one code, so
// these are a list of label sets with counts.
type judge struct {
	set      []int32    // by row of the sample: its label set, 0 to sets-1
	of       []uint32   // by label set: its number among those of the training
	counts   []int32    // by label set: its rows
	relevant [][]bool   // by two label sets: whether they share a label
	queries  []int32    // rows that are relevant to others
	harmonic []float64  // see database.harmonic
	scratch  []judgment // by worker
}

// judgment is the memory of one goroutine.
type judgment struct {
	dist []uint16
	ties []tie // by distance; empty between judgements
}

// newJudge takes the label set of each row of the sample, the label sets, and the length
// of codes.
func newJudge(setOf []uint32, all *labelSets, bits int) *judge {
	j := &judge{harmonic: harmonicNumbers(len(setOf))}
	j.set, j.of, j.relevant = relevantSets(setOf, all.sets, len(all.labels))
	j.counts = make([]int32, len(j.of))
	for _, s := range j.set {
		j.counts[s]++
	}
	limit := max(1, judgePairs/max(1, len(j.of)))
	for row, own := range j.set {
		for s, relevant := range j.relevant[own] {
			if relevant && (j.counts[s] > 1 || int32(s) != own) {
				j.queries = append(j.queries, int32(row))
				break
			}
		}
		if len(j.queries) == limit {
			break
		}
	}
	for range workerCount() {
		j.scratch = append(j.scratch, judgment{dist: make([]uint16, len(j.of)), ties: make([]tie, bits+1)})
	}
	return j
}

// precision returns the average precision of a row as a query with this code, among the
// codes of the label sets, expected over all orders of ties.
func (j *judge) precision(worker int, row int32, code codec.Code, codes []uint64) float64 {
	s := &j.scratch[worker]
	codec.Distances(s.dist, code, codes)
	own := j.set[row]
	relevant := j.relevant[own]
	nearest, farthest := len(s.ties), 0
	for set, d := range s.dist {
		t := &s.ties[d]
		n := j.counts[set]
		if int32(set) == own {
			n-- // the query itself
		}
		t.rows += n
		if relevant[set] {
			t.relevant += n
		}
		nearest, farthest = min(nearest, int(d)), max(farthest, int(d))
	}
	ties := s.ties[nearest : farthest+1]
	defer clear(ties)
	return expectedPrecision(ties, j.harmonic)
}
