package search

import (
	"slices"

	"github.com/fddhdb/fddhdb/internal/quant"
)

// In the order byAuto, vectors may decide among the items of one code: the items are ordered by the cosine
// between the query's vector and their vectors of the same modality. Codes still find items by their labels,
// and the items most like the query come first. Vectors count at 8 bits a dimension, in memory or read from
// the store, so both give the same order.

// Vectors decide if the collection has at most autoItems items, and if their vectors of one modality at 8
// bits take at most autoBytes. The first query after opening reads the vectors of a code one by one: some
// milliseconds for 2,000 items. The limits are no options and do not depend on memory: a query has one order,
// however the database is opened.
const (
	autoItems = 40_000
	autoBytes = 16 << 20
)

// vectorsDecide reports whether vectors decide among the items of one code, by the order byAuto. All items
// need the query's modality: items without it would come last of their code.
func (s *Searcher) vectorsDecide() bool {
	t := s.p.modality
	if !s.hasComparable() {
		return false
	}
	n := s.Cv.Presence[t].GetCardinality()
	return n == s.Cv.Live.GetCardinality() && n <= uint64(min(autoItems, autoBytes/quant.VectorBytes(s.Cv.Modalities[t].Dim)))
}

// hasComparable reports whether the query is a vector of a modality that can be in memory at 8 bits.
func (s *Searcher) hasComparable() bool {
	return s.p.direction != nil && s.Cv.KeepsVectors(s.p.modality)
}

// compareVectors lets vectors decide among the items of one code, and reports whether they can.
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

// lacking is the similarity of items without the query's modality: they come last of their code. Such items
// exist only if they were stored after the first page of an answer.
const lacking = -2

// vectorSimilarities is similarities for vectors. f gets the rows that have the modality first.
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
