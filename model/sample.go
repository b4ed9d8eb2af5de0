package model

import (
	"cmp"
	"slices"
)

// A sample keeps some of the vectors that pass by, such as the anchors of a map. The
// number of vectors need not be known before.
type sample struct {
	place func(i int) int // see newSample
	n     int             // vectors so far
	kept  []sampled
}

// sampled is a kept vector.
type sampled struct {
	item int    // number among the items that have the modality
	x    Vector // a copy
}

// newSample returns an empty sample. place(i) is called for i = 0, 1, 2 and so on. It
// returns the place at which vector i is kept, replacing the vector there, or -1 if it
// is not kept. New places are taken in ascending order.
func newSample(place func(i int) int) *sample { return &sample{place: place} }

// add offers the next vectors, and copies those that it keeps.
func (s *sample) add(xs []Vector) {
	for _, x := range xs {
		p := s.place(s.n)
		if p == len(s.kept) {
			s.kept = append(s.kept, sampled{})
		}
		if p >= 0 {
			s.kept[p].item = s.n
			s.kept[p].x.set(Modality{Dim: len(x.Value), Sparse: x.IsSparse()}, x)
		}
		s.n++
	}
}

// ordered returns the kept vectors, in the order in which they came.
func (s *sample) ordered() []Vector {
	slices.SortFunc(s.kept, func(a, b sampled) int { return cmp.Compare(a.item, b.item) })
	var xs []Vector
	for _, k := range s.kept {
		xs = append(xs, k.x)
	}
	return xs
}
