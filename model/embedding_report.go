package model

import (
	"math"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// An Embedding reports how more labels than bits were embedded, and the cost in
// retrieval. Each label alone is a query by its code, and the training items are ranked
// by the codes of their label sets. MAP is 1 if nothing is lost: then all items with
// the label come first.
type Embedding struct {
	Dims int `json:"dims"` // r, the dimensions that labels are mapped to
	// Judged is the number of labels for which the following is measured, against all
	// labels and items. It is all labels up to some thousands, else some of them,
	// evenly spaced.
	Judged int `json:"judged"`
	// Coherence is the largest |cosine| between the vectors of two labels.
	Coherence float64 `json:"coherence"`
	// LeastDistance is the least Hamming distance between the codes of two labels.
	LeastDistance int `json:"least_distance"`
	// MAP is the mean average precision, expected over ties. MAPLeast is the least
	// average precision of a label.
	MAP      float64 `json:"map_tie"`
	MAPLeast float64 `json:"map_tie_least"`
}

// judgedPairs bounds the pairs of codes that a report compares: about 0.1 s.
const judgedPairs = 1 << 27

// labelCodes returns the code of each label alone.
func (s *solver) labelCodes() []uint64 {
	codes := make([]uint64, s.c*s.words)
	for l := range s.c {
		codec.PackSigns(codes[l*s.words:(l+1)*s.words], s.cm[l*s.q:(l+1)*s.q])
	}
	return codes
}

// sharing returns the labels whose code another label has too, ascending.
func (s *solver) sharing(codes []uint64) (labels []int) {
	having := make(map[string]int)
	keys := make([]byte, 0, s.c*s.words*8)
	for l := range s.c {
		keys = codec.Code(codes[l*s.words:(l+1)*s.words]).AppendBytes(keys, s.q)
	}
	key := func(l int) string { return string(keys[l*s.q/8 : (l+1)*s.q/8]) }
	for l := range s.c {
		having[key(l)]++
	}
	for l := range s.c {
		if having[key(l)] > 1 {
			labels = append(labels, l)
		}
	}
	return labels
}

// judgeLabels fills in the fields of the report about codes of labels.
func (r *Report) judgeLabels(s *solver) {
	codes := s.labelCodes()
	r.SharedLabels = len(s.sharing(codes))
	items := make([]int, s.c)
	for i, set := range s.sets.sets {
		for _, l := range set {
			items[l] += s.sets.counts[i]
		}
	}
	for _, n := range items {
		if n == r.TrainItems {
			r.Everywhere++
		}
	}
	if e := s.sets.embedding; e != nil {
		r.Embedding = e.judge(s, codes)
	}
}

// judge measures the embedding as [Embedding] describes.
func (e *embedding) judge(s *solver, codes []uint64) *Embedding {
	having := make([][]int32, s.c) // by label: the sets that hold it
	for i, set := range s.sets.sets {
		for _, l := range set {
			having[l] = append(having[l], int32(i))
		}
	}
	harmonic := harmonicNumbers(s.sets.items)
	judged := min(s.c, max(1, judgedPairs/max(s.c, len(s.sets.sets))))
	out := &Embedding{Dims: e.e.Cols, Judged: judged, LeastDistance: s.q, MAPLeast: 1}
	labels := dense.Pack(e.e)
	precisions, coherences, distances := make([]float64, judged), make([]float64, judged), make([]uint16, judged)
	type scratch struct {
		dist []uint16
		ties []tie
		cos  []float64
	}
	work := make([]scratch, s.workers)
	for i := range work {
		work[i] = scratch{make([]uint16, max(s.c, len(s.sets.sets))), make([]tie, s.q+1), make([]float64, s.c)}
	}
	parallel(s.workers, judged, func(worker, i int) {
		w := &work[worker]
		l := int(int64(i) * int64(s.c) / int64(judged))
		code := codec.Code(codes[l*s.words : (l+1)*s.words])

		dense.MulNT(dense.Of(1, s.c, w.cos), e.e.Slice(l, l+1), labels)
		codec.Distances(w.dist[:s.c], code, codes)
		distances[i] = uint16(s.q)
		for other, cos := range w.cos {
			if other != l {
				coherences[i] = max(coherences[i], math.Abs(cos))
				distances[i] = min(distances[i], w.dist[other])
			}
		}

		codec.Distances(w.dist[:len(s.sets.sets)], code, s.codes)
		clear(w.ties)
		for set, n := range s.sets.counts {
			w.ties[w.dist[set]].rows += int32(n)
		}
		for _, set := range having[l] {
			w.ties[w.dist[set]].relevant += int32(s.sets.counts[set])
		}
		precisions[i] = min(1, expectedPrecision(w.ties, harmonic)) // at most 1 in spite of rounding
	})
	for i, p := range precisions {
		out.MAP += p
		out.MAPLeast = min(out.MAPLeast, p)
		out.Coherence = max(out.Coherence, coherences[i])
		out.LeastDistance = min(out.LeastDistance, int(distances[i]))
	}
	out.MAP /= float64(judged)
	return out
}
