package model

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A sample keeps some of the vectors that pass by, the anchors of a map, so that
// how many will come need not be known before.
type sample struct {
	place func(i int) int
	n     int // vectors so far
	kept  []sampled
}

type sampled struct {
	item int // among those that have the modality
	x    Vector
}

// newSample returns an empty sample. place(i), called for i = 0, 1, 2 and so on,
// says at which place vector i is kept, instead of the one that was there; -1 means
// that it is not kept. Places are taken in ascending order.
func newSample(place func(i int) int) *sample { return &sample{place: place} }

// reservoir returns the places of k random vectors out of any number, each set of
// k equally likely (Vitter's algorithm R: vector i is kept with probability
// k/(i+1)).
func reservoir(rng *rand.Rand, k int) func(i int) int {
	return func(i int) int {
		if i < k {
			return i
		}
		if j := rng.IntN(i + 1); j < k {
			return j
		}
		return -1
	}
}

// add takes the next vectors and keeps copies.
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

// ordered returns what was kept, in the order in which it came.
func (s *sample) ordered() []Vector {
	slices.SortFunc(s.kept, func(a, b sampled) int { return cmp.Compare(a.item, b.item) })
	var xs []Vector
	for _, k := range s.kept {
		xs = append(xs, k.x)
	}
	return xs
}
