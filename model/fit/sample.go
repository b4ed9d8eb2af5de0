package fit

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model"
)

// A sample keeps some of the offered vectors, such as the anchors of a map. The number of vectors need not be
// known before.
type sample struct {
	place func(i int) int // see newSample
	n     int             // vectors so far
	kept  []sampled
}

// sampled is a kept vector.
type sampled struct {
	item int          // number among the items that have the modality
	x    model.Vector // a copy
}

// newSample returns an empty sample. place(i) is called for i = 0, 1, 2 and so on. It
// returns the place at which vector i is kept, replacing the vector there, or -1 if it
// is not kept. New places are taken in ascending order.
func newSample(place func(i int) int) *sample { return &sample{place: place} }

// add offers the next vectors, and copies the ones that it keeps.
func (s *sample) add(xs []model.Vector) {
	for _, x := range xs {
		p := s.place(s.n)
		if p == len(s.kept) {
			s.kept = append(s.kept, sampled{})
		}
		if p >= 0 {
			s.kept[p].item = s.n
			s.kept[p].x.Set(model.Modality{Dim: len(x.Value), Sparse: x.IsSparse()}, x)
		}
		s.n++
	}
}

// ordered returns the kept vectors, in the order in which they came.
func (s *sample) ordered() []model.Vector {
	slices.SortFunc(s.kept, func(a, b sampled) int { return cmp.Compare(a.item, b.item) })
	var xs []model.Vector
	for _, k := range s.kept {
		xs = append(xs, k.x)
	}
	return xs
}

// A bottomSample keeps the k items with the least random keys of all offered ones, which is a random sample.
// The key depends on the item alone. So samples of several modalities hold the same items as far as they can,
// and no item is missing that is below the limits of all samples (Cohen and Kaplan, "Summarizing data using
// bottom-k sketches", PODC 2007).
type bottomSample struct {
	k, seed uint64  // size of the sample, and seed of the keys
	kept    []keyed // a heap, the greatest key first
	dropped bool    // an item was left out
}

// keyed is a kept item.
type keyed struct {
	key   uint64
	item  int
	place int // of its vector in the sample
}

// key returns the random number of an item (SplitMix64).
func (s *bottomSample) key(item int) uint64 {
	z := s.seed + (uint64(item)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// add offers an item. It returns the place at which to keep the item: the place of an
// item that goes, or the next free one. It returns -1 if the item is not kept.
func (s *bottomSample) add(item int) int {
	e := keyed{key: s.key(item), item: item, place: len(s.kept)}
	if uint64(len(s.kept)) < s.k {
		heap.Push(s, e)
		return e.place
	}
	s.dropped = true
	if e.key >= s.kept[0].key {
		return -1
	}
	e.place = s.kept[0].place
	s.kept[0] = e
	heap.Fix(s, 0)
	return e.place
}

// shrink reduces the sample to k items. It returns their old places, in the order of
// their new places.
func (s *bottomSample) shrink(k int) (places []int) {
	// descending keys are a heap, too
	slices.SortFunc(s.kept, func(a, b keyed) int { return cmp.Compare(b.key, a.key) })
	s.kept = s.kept[len(s.kept)-k:]
	for i := range s.kept {
		places = append(places, s.kept[i].place)
		s.kept[i].place = i
	}
	s.k, s.dropped = uint64(k), true
	return places
}

// limit returns the key up to which all items are kept.
func (s *bottomSample) limit() uint64 {
	if !s.dropped {
		return math.MaxUint64
	}
	return s.kept[0].key
}

// items returns the kept items by place.
func (s *bottomSample) items() []int {
	items := make([]int, len(s.kept))
	for _, e := range s.kept {
		items[e.place] = e.item
	}
	return items
}

// ofAll returns at most n items of several samples with the same seed: those with the
// least keys. Each of them is in every sample whose modality it has.
func ofAll(samples []*bottomSample, n int) []int {
	limit := uint64(math.MaxUint64)
	var all []keyed
	for _, s := range samples {
		limit = min(limit, s.limit())
		all = append(all, s.kept...)
	}
	slices.SortFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.key, b.key),
			cmp.Compare(a.item, b.item))
	})
	var items []int
	for i, e := range all {
		if e.key > limit || len(items) == n {
			break
		}
		if i == 0 || e.item != all[i-1].item {
			items = append(items, e.item)
		}
	}
	return items
}

// Len, Less, Swap, Push and Pop implement heap.Interface.

func (s *bottomSample) Len() int           { return len(s.kept) }
func (s *bottomSample) Less(i, j int) bool { return s.kept[i].key > s.kept[j].key }
func (s *bottomSample) Swap(i, j int)      { s.kept[i], s.kept[j] = s.kept[j], s.kept[i] }
func (s *bottomSample) Push(x any)         { s.kept = append(s.kept, x.(keyed)) }
func (s *bottomSample) Pop() any {
	last := len(s.kept) - 1
	e := s.kept[last]
	s.kept = s.kept[:last]
	return e
}
