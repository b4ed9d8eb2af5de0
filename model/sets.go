package model

import (
	"encoding/binary"
	"maps"
	"slices"

	"gonum.org/v1/gonum/floats"
)

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

// merge adds the items of o, which come after those of s.
func (s *setBuilder) merge(o *setBuilder) {
	for set, labels := range o.keys {
		mine := s.set(labels)
		s.counts[mine] += o.counts[set]
	}
	for l, sum := range o.hy {
		mine, ok := s.hy[l]
		switch {
		case !ok && len(s.hy) < s.limit:
			s.hy[l] = slices.Clone(sum)
		case !ok:
			s.hy[l] = nil
		case mine != nil && sum != nil:
			floats.Add(mine, sum) // exact: they are counts
		}
	}
	s.n += o.n
}

func (s *setBuilder) appendTo(w *wireWriter) {
	w.u64(uint64(s.n))
	w.u32(uint32(len(s.keys)))
	for set, labels := range s.keys {
		w.numbers(labels)
		w.u64(uint64(s.counts[set]))
	}
	w.u32(uint32(len(s.hy)))
	for _, l := range s.labels() {
		w.u32(l)
		if sum := s.hy[l]; sum == nil {
			w.u8(0)
		} else {
			w.u8(1)
			w.f64s(sum...)
		}
	}
}

func (s *setBuilder) readFrom(r *wireReader) {
	*s = *newSetBuilder(s.bits, s.limit, false)
	s.n = r.number("the number of items")
	for range r.u32("the number of label sets") {
		labels := r.numbers("a label set", maxLabels)
		count := r.number("the items of a label set")
		if r.err == nil && (len(labels) == 0 || !ascend(labels)) {
			r.fail("a label set that does not ascend")
		}
		if r.err != nil {
			return
		}
		s.counts[s.set(labels)] += count
	}
	for range r.u32("the number of labels") {
		l := r.u32("a label")
		var sum []float64
		if r.u8("whether a label has a sum") != 0 {
			sum = r.f64s(s.bits, "the codes of a label")
		}
		if r.err != nil {
			return
		}
		s.hy[l] = sum
	}
}
