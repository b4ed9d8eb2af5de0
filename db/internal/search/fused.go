package search

import (
	"slices"

	"github.com/fddhdb/fddhdb/internal/quant"
)

// The order byFused is by codes as every other; the items of one code are in the order of the
// cosine between the vector of the query and theirs of the same modality. Items that lack the
// modality come behind those that have it, in the order of their projections, to some 5e-7: so
// finely does a float32 between -5 and -3 tell them apart. Vectors count with 8 bits a dimension
// whether they are in memory or read from the store, so that both give the same order.

// apart is what keeps items that lack the modality behind the others: it is taken off their
// similarity, which is -1 to 1. In cursors, too.
const apart = 4

// So many items may a collection have, and so much memory may their vectors of one modality take at
// 8 bits, for auto to choose byFused. The first query after opening has to read the vectors of a
// code one by one: some milliseconds of 2,000 items. The limits are no options, and do not depend on
// what is in memory: a query has one order, however the database is opened.
const (
	autoItems = 40_000
	autoBytes = 16 << 20
)

// auto returns the order that byAuto stands for. byFused puts first what is most like the query, where
// vectors are not too many to be compared, and all items have one: it would put those that have none
// behind all others of their code.
func (s *Searcher) auto() Order {
	t := s.p.modality
	if s.p.direction == nil || !s.Cv.KeepsVectors(t) {
		return byProjection
	}
	n := s.Cv.Presence[t].GetCardinality()
	if n < s.Cv.Live.GetCardinality() || n > uint64(min(autoItems, autoBytes/quant.VectorBytes(s.Cv.Modalities[t].Dim))) {
		return byProjection
	}
	return byFused
}

// fuse prepares the order byFused. For a query that is no vector, or one of a modality whose
// vectors cannot be in memory, it becomes byProjection.
func (s *Searcher) fuse() {
	t := s.p.modality
	if s.p.direction == nil || !s.Cv.KeepsVectors(t) {
		s.q.Order = byProjection
		return
	}
	z := make([]float64, len(s.p.vector.Value))
	for i, v := range s.p.vector.Value {
		z[i] = float64(v)
	}
	if s.p.features = quant.NewQuery(z); s.p.features == nil { // it is zero
		s.q.Order = byProjection
		return
	}
	s.allHave = s.Cv.Presence[t].GetCardinality() == s.Cv.Live.GetCardinality()
	if uint64(s.Cv.Vectors[t].Rows()) < s.Cv.NextRow && s.Cv.WantVectors(t) {
		s.tools.Wanted()
	}
}

// fusedSimilarities is similarities for the order byFused. f sees the rows that have the modality
// first.
func (s *Searcher) fusedSimilarities(rows []uint32, floor float32, f func(uint32, float32) float32) error {
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
	if len(without) == 0 {
		return nil
	}
	return s.directionSimilarities(without, floor+apart, func(row uint32, similarity float32) float32 {
		return keep(row, similarity-apart) + apart
	})
}
