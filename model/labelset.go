package model

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// labelSets are the distinct sets of labels of the training items. There are far fewer
// sets than items, so whatever depends on labels alone is computed once a set. All but
// the centre stays as it is after the scan.
type labelSets struct {
	labels []uint32              // the label of each column of Y, ascending
	sets   [][]int32             // the columns of each set, ascending; in order of appearance
	counts []int                 // items that have the set
	items  int                   // training items
	setOf  func(item int) uint32 // the set of an item; where the items lie elsewhere, of sampled ones only

	embedding *embedding // nil unless there are more labels than bits
	centre    []float64  // see setCentre; nil: nothing is taken out
}

// leastCentred is the number of classes from which on their mean is taken out.
const leastCentred = 5

// centres are the shares of the mean to choose from if items have several labels: the
// default, and another one.
var centres = [2]float64{.5, 0}

// several reports whether an item has several labels.
func (s *labelSets) several() bool {
	return slices.ContainsFunc(s.sets, func(set []int32) bool { return len(set) > 1 })
}

// defaultCentre returns the share of the mean that setCentre takes out unless it is chosen
// or given.
//
// If every item has one label it is all. A Hamming distance cannot use what all classes
// share; it would only take room from what tells them apart. With fewer than 5 classes
// nothing is taken out: too little would be left of their directions. Two classes would
// have a single direction: two codes would be equal in all bits, or opposite in all.
//
// If items have several labels it is half. To take out all of it loses retrieval, as the
// labels of an item are then no longer at right angles. If vectors tell little of the
// labels nothing should be taken out: projections then know the mean best, that is which
// labels are frequent, and items that have these are most often relevant.
func (s *labelSets) defaultCentre() float64 {
	switch {
	case s.several():
		return centres[0]
	case len(s.labels) < leastCentred:
		return 0
	}
	return 1
}

// setCentre decides what AimLabels takes out of the vector of a label set, times the
// number of its labels: a share of the mean. If every item has one label that is the mean
// of all classes, 1/c each: C y becomes C (I - 11'/c) y with the share 1. If items have
// several labels it is the mean of their sets.
func (s *labelSets) setCentre(share float64) {
	s.centre = nil
	if share == 0 {
		return
	}
	s.centre = make([]float64, len(s.labels))
	if !s.several() {
		for l := range s.centre {
			s.centre[l] = share / float64(len(s.centre))
		}
		return
	}
	for i, set := range s.sets {
		for _, l := range set {
			s.centre[l] += share * float64(s.counts[i]) / float64(len(set)) / float64(s.items)
		}
	}
}

// weights returns the weights of labels for an aim; see weigh. For AimWeighted the mean
// square of the weights of the training items is 1.
func (s *labelSets) weights(aim Aim, prior float64) []float64 {
	counts := make([]float64, len(s.labels))
	for i, set := range s.sets {
		u := float64(unit(len(set)))
		for _, l := range set {
			counts[l] += u * u * float64(s.counts[i])
		}
	}
	w := weigh(counts, prior)
	if aim != AimWeighted {
		return w
	}
	square := 0.0
	for i, set := range s.sets {
		x := meanWeight(set, w)
		square += float64(s.counts[i]) * x * x
	}
	floats.Scale(1/math.Sqrt(square/float64(s.items)), w)
	return w
}

// centred subtracts from each row of x, a row of q numbers a label, what all of them
// share: centre' x.
func (s *labelSets) centred(x []float64, q int) {
	if s.centre == nil {
		return
	}
	mean := make([]float64, q)
	for l, v := range s.centre {
		floats.AddScaled(mean, v, x[l*q:(l+1)*q])
	}
	for l := range s.centre {
		floats.Sub(x[l*q:(l+1)*q], mean)
	}
}

// uncentred is the transpose of centred: it subtracts from row l of x the sum of all
// rows, times centre[l].
func (s *labelSets) uncentred(x []float64, q int) {
	if s.centre == nil {
		return
	}
	sum := make([]float64, q)
	for row := range slices.Chunk(x, q) {
		floats.Add(sum, row)
	}
	for l, v := range s.centre {
		floats.AddScaled(x[l*q:(l+1)*q], -v, sum)
	}
}

// appendKnown appends the columns of the known ones of labels. Both known and labels
// ascend, and so do the columns.
func appendKnown(dst []int32, known, labels []uint32) []int32 {
	for _, l := range labels {
		if i, ok := slices.BinarySearch(known, l); ok {
			dst = append(dst, int32(i))
		}
	}
	return dst
}

// setBuilder collects label sets, and the product H0 Y' of the random start with them,
// label by label. The labels, and so the columns, are known only at the end.
type setBuilder struct {
	bits   int
	limit  int                  // largest number of labels
	keep   bool                 // keep the set of each item
	n      int                  // items
	index  map[string]uint32    // labels as bytes -> number of the set
	keys   [][]uint32           // labels of each set
	counts []int                // items of each set
	of     []uint32             // set of each item, if they are kept: 4 bytes an item
	hy     map[uint32][]float64 // by label: the sum of the codes of its items
	key    []byte               // scratch memory
}

// newSetBuilder returns a builder of the sets of no items, for codes of so many bits. keep says that
// it keeps the set of each item.
func newSetBuilder(bits, limit int, keep bool) *setBuilder {
	return &setBuilder{bits: bits, limit: limit, keep: keep, index: map[string]uint32{}, hy: map[uint32][]float64{}}
}

// add takes the labels and the starting code of the next item.
func (s *setBuilder) add(labels []uint32, code []uint64) {
	// H0 Y' has, for each label, the sum of the random codes of the items that carry it. So
	// H0, a code an item, need not be kept.
	for _, l := range labels {
		sum, ok := s.hy[l]
		if !ok {
			if len(s.hy) < s.limit { // above the limit finish refuses: only count
				sum = make([]float64, s.bits)
			}
			s.hy[l] = sum
		}
		if sum != nil {
			addSigns(sum, code, 1)
		}
	}
	set := s.set(labels)
	s.counts[set]++
	s.n++
	if s.keep {
		s.of = append(s.of, set)
	}
}

// set returns the number of a set, which it adds if it is new.
func (s *setBuilder) set(labels []uint32) uint32 {
	s.key = s.key[:0]
	for _, l := range labels {
		s.key = binary.LittleEndian.AppendUint32(s.key, l)
	}
	set, ok := s.index[string(s.key)]
	if !ok {
		set = uint32(len(s.keys))
		s.index[string(s.key)] = set
		s.keys = append(s.keys, slices.Clone(labels))
		s.counts = append(s.counts, 0)
	}
	return set
}

// labels returns the labels of all sets, ascending.
func (s *setBuilder) labels() []uint32 { return slices.Sorted(maps.Keys(s.hy)) }

// finish checks that there is something to learn. It returns the sets, and H0 Y' with a
// row for each label.
func (s *setBuilder) finish() (*labelSets, []float64, error) {
	if s.n == 0 {
		return nil, nil, errNoneHasLabels
	}
	if len(s.keys) == 1 {
		return nil, nil, fmt.Errorf("%w: all %d training items have the same labels, so they would all get the same code: label items of at least two kinds", ErrOneClass, s.n)
	}
	labels := s.labels()
	if len(labels) > s.limit {
		return nil, nil, &BitsError{Bits: s.bits, Labels: len(labels), Limit: s.limit}
	}
	sets := &labelSets{labels: labels, counts: s.counts, items: s.n, setOf: func(item int) uint32 { return s.of[item] }}
	for _, k := range s.keys {
		sets.sets = append(sets.sets, appendKnown(nil, labels, k))
	}
	hy := make([]float64, 0, len(labels)*s.bits)
	for _, l := range labels {
		hy = append(hy, s.hy[l]...)
	}
	return sets, hy, nil
}
