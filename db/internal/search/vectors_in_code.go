package search

import (
	"slices"

	"github.com/fddhdb/fddhdb/internal/quant"
)

// In the order byAuto vectors may decide among the items of one code: these come by the cosine between
// the vector of the query and theirs of the same modality. What codes find is as good by labels as ever,
// and what is most like the query comes first. Vectors count with 8 bits a dimension whether they are in
// memory or read from the store, so that both give the same order.

// So many items may a collection have, and so much memory may their vectors of one modality take at
// 8 bits, for vectors to decide. The first query after opening has to read the vectors of a code one by
// one: some milliseconds for 2,000 items. The limits are no options, and do not depend on what is in
// memory: a query has one order, however the database is opened.
const (
	autoItems = 40_000
	autoBytes = 16 << 20
)

// vectorsDecide reports whether vectors decide among the items of one code, where the order is left open.
// All items have to have the query's modality: those without one would come last of their code.
func (s *Searcher) vectorsDecide() bool {
	t := s.p.modality
	if !s.hasComparable() {
		return false
	}
	n := s.Cv.Presence[t].GetCardinality()
	return n == s.Cv.Live.GetCardinality() && n <= uint64(min(autoItems, autoBytes/quant.VectorBytes(s.Cv.Modalities[t].Dim)))
}

// hasComparable reports whether the query is a vector whose modality can be in memory at 8 bits.
func (s *Searcher) hasComparable() bool {
	return s.p.direction != nil && s.Cv.KeepsVectors(s.p.modality)
}

// compareVectors has vectors decide among the items of one code, and reports whether they can.
func (s *Searcher) compareVectors() bool {
	if !s.hasComparable() {
		return false
	}
	t := s.p.modality
	z := make([]float64, len(s.p.vector.Value))
	for i, v := range s.p.vector.Value {
		z[i] = float64(v)
	}
	if s.p.features = quant.NewQuery(z); s.p.features == nil { // it is zero
		return false
	}
	s.allHave = s.Cv.Presence[t].GetCardinality() == s.Cv.Live.GetCardinality()
	if uint64(s.Cv.Vectors[t].Rows()) < s.Cv.NextRow && s.Cv.WantVectors(t) {
		s.tools.Wanted()
	}
	return true
}

// lacking is the similarity of items that lack the modality of the query: they come last of their code.
// There are some only where they have been stored since the first page of an answer.
const lacking = -2

// vectorSimilarities is similarities of vectors. f sees the rows that have the modality first.
func (s *Searcher) vectorSimilarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
	t := s.p.modality
	with, without := rows, s.without[:0]
	if having := s.Cv.Presence[t]; !s.allHave {
		with = s.with[:0]
		for _, row := range rows {
			if having.Contains(row) {
				with = append(with, row)
			} else {
				without = append(without, row)
			}
		}
		s.with, s.without = with, without
	}
	keep := func(row uint32, similarity float32) float32 {
		floor = f(row, similarity)
		return floor
	}
	table := s.Cv.Vectors[t]
	inMemory, _ := slices.BinarySearch(with, table.Rows())
	if inMemory > 0 {
		table.Each(s.p.features, with[:inMemory], floor, keep)
	}
	var b []byte
	for _, row := range with[inMemory:] {
		v, err := s.storedVector(row, t)
		if err != nil {
			return err
		}
		b = quant.AppendVector(b[:0], v.Value)
		if x := s.p.features.Similarity(b[:len(v.Value)]); x > floor {
			keep(row, x)
		}
	}
	for _, row := range without {
		if lacking > floor {
			keep(row, lacking)
		}
	}
	return nil
}
