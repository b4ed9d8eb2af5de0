package model

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// labelSets are the distinct sets of labels of the training items. There are far fewer
// sets than items, so whatever depends on labels alone is computed once a set. They do
// not change after the scan.
type labelSets struct {
	labels []uint32  // the label of each column of Y, ascending
	sets   [][]int32 // the columns of each set, ascending; in order of appearance
	counts []int     // items that have the set
	of     []uint32  // by item: its set; 4 bytes an item

	embedding *embedding // nil unless there are more labels than bits
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
	index  map[string]uint32    // labels as bytes -> number of the set
	keys   [][]uint32           // labels of each set
	counts []int                // items of each set
	of     []uint32             // set of each item
	hy     map[uint32][]float64 // by label: the sum of the codes of its items
	key    []byte               // scratch memory
}

// newSetBuilder returns a builder of the sets of no items, for codes of so many bits.
func newSetBuilder(bits int) *setBuilder {
	return &setBuilder{bits: bits, limit: bits, index: map[string]uint32{}, hy: map[uint32][]float64{}}
}

// add takes the labels and the starting code of the next item.
func (s *setBuilder) add(labels []uint32, code []uint64) {
	// H0 Y' has, for each label, the sum of the random codes of the items that carry it. So
	// H0, a code an item, need not be kept.
	s.key = s.key[:0]
	for _, l := range labels {
		s.key = binary.LittleEndian.AppendUint32(s.key, l)
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
	set, ok := s.index[string(s.key)]
	if !ok {
		set = uint32(len(s.keys))
		s.index[string(s.key)] = set
		s.keys = append(s.keys, slices.Clone(labels))
		s.counts = append(s.counts, 0)
	}
	s.counts[set]++
	s.of = append(s.of, set)
}

// finish checks that there is something to learn. It returns the sets, and H0 Y' with a
// row for each label.
func (s *setBuilder) finish() (*labelSets, []float64, error) {
	if len(s.of) == 0 {
		return nil, nil, fmt.Errorf("%w: no item has any", ErrNoLabels)
	}
	if len(s.keys) == 1 {
		return nil, nil, fmt.Errorf("%w: all %d training items have the same labels, so they would all get the same code: label items of at least two kinds", ErrOneClass, len(s.of))
	}
	labels := slices.Sorted(maps.Keys(s.hy))
	if len(labels) > s.limit {
		return nil, nil, &BitsError{Bits: s.bits, Labels: len(labels), Limit: s.limit}
	}
	sets := &labelSets{labels: labels, counts: s.counts, of: s.of}
	for _, k := range s.keys {
		sets.sets = append(sets.sets, appendKnown(nil, labels, k))
	}
	hy := make([]float64, 0, len(labels)*s.bits)
	for _, l := range labels {
		hy = append(hy, s.hy[l]...)
	}
	return sets, hy, nil
}
