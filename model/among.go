package model

import (
	"github.com/fddhdb/fddhdb/codec"
)

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
	// Model.Fuse itself makes the codes, so that they are those of a model with this fusion.
	m := &Model{fusion: how, mean: a.mean}
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
			m.Fuse(s.z, row)
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
