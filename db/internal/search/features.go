package search

import (
	"cmp"
	"container/heap"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/quant"
	"github.com/fddhdb/fddhdb/model"
)

// defaultWindow is the number of items that byFeatures puts in order if the query does
// not say and K is small.
const defaultWindow = 200

// window returns how many of the first items are put in order by their features, 0 for
// any other order. It is never less than K, and by default at least twice K.
func (s *Searcher) window() int {
	if s.q.Order != byFeatures {
		return 0
	}
	k := s.q.K
	if s.q.Window > 0 {
		return max(s.q.Window, k)
	}
	return max(defaultWindow, k, min(k, math.MaxInt/2)*2)
}

// checkFeatures refuses queries byFeatures that make no sense: with a cursor, without a
// vector, or by a modality that no item has which may be a hit. It copies the vector, as
// Runs outlive the call that the caller's slices were given to.
func (s *Searcher) checkFeatures() error {
	switch {
	case s.q.After != "":
		return fault.Invalid("rerank features has no cursors, as items that come or go change which are put in order: ask for more with a larger K")
	case s.Cv.IndexOnly:
		return s.Cv.LacksVectors("to rerank features by: leave it out")
	case !s.p.vector.Present():
		return fault.Invalid("rerank features compares vectors, and the query is by code: give it a vector, or the key of an item that has one, and its modality")
	}
	s.p.vector = record.CloneVector(s.p.vector)
	having := s.Cv.Presence[s.p.modality]
	if s.filter == nil && having.IsEmpty() || s.filter != nil && !s.filter.IsEmpty() && !s.filter.Intersects(having) {
		return fault.Invalid("rerank features compares vectors of modality %q, which no item that the query may find has: leave it out, or query by another modality",
			s.Cv.Modalities[s.p.modality].Name)
	}
	return nil
}

// A candidate is an item of the window.
type candidate struct {
	place
	at      int     // where in the window it is by code
	least   float64 // the squared distance of its vector from that of the query is not less
	squared float64 // that distance, once it has been read; +Inf if the item lacks the modality, so that it comes last
	read    bool    // squared is known
}

// before reports whether a comes before b, both read: equal distances stay as they were.
func (a *candidate) before(b *candidate) bool {
	return a.squared < b.squared || a.squared == b.squared && a.at < b.at
}

// candidates are a heap, the nearest first.
type candidates []*candidate

func (c candidates) Len() int           { return len(c) }
func (c candidates) Less(i, j int) bool { return c[i].before(c[j]) }
func (c candidates) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)        { *c = append(*c, x.(*candidate)) }

func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// featuresFirst yields up to k items. The first window of them, in the order of byCode, come
// sorted by features; the others follow as byCode has them.
//
// A vector in memory at 8 bits gives a bound: no vector is nearer than that (quant.Table). So
// vectors are read in the order of their bounds, and an item is yielded as soon as its distance
// is less than all bounds that are left: then no vector that has not been read can be nearer, nor
// as near. No other order of reading needs fewer vectors (Seidl and Kriegel, Optimal multi-step
// k-nearest neighbor search, 1998). Vectors that are not in memory have the bound 0.
func (s *Searcher) featuresFirst(ctx context.Context, k int) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		n := s.window()
		window := make([]candidate, 0, min(n, s.room(n)))
		sorted := false
		give := func() (more bool, err error) {
			sorted = true
			return s.give(ctx, window, &k, yield)
		}
		for part, err := range s.places(ctx, max(k, n)) {
			for _, p := range part {
				switch {
				case !sorted:
					if window = append(window, candidate{place: p, at: len(window)}); len(window) < n {
						continue
					}
					var more bool
					more, err = give()
					if s.q.MinSimilarity != 0 { // behind the window nothing is compared
						s.ended, more = true, false
					}
					if err == nil && !more {
						return
					}
				default:
					var h Hit
					p.row.similarity = none
					if h, err = s.hit(p); err == nil {
						if k--; !yield(h, nil) || k == 0 {
							return
						}
					}
				}
				if err != nil {
					break
				}
			}
			if err != nil {
				yield(Hit{}, err)
				return
			}
		}
		if !sorted {
			if _, err := give(); err != nil {
				yield(Hit{}, err)
			}
		}
	}
}

// give yields the items of the window in the order of their features, and counts them down from
// k. It reports whether the caller wants more, which may follow.
func (s *Searcher) give(ctx context.Context, window []candidate, k *int, yield func(Hit, error) bool) (more bool, err error) {
	s.boundWindow(window)
	unread := make([]*candidate, len(window))
	for i := range window {
		unread[i] = &window[i]
	}
	slices.SortFunc(unread, func(a, b *candidate) int { return cmp.Or(cmp.Compare(a.least, b.least), cmp.Compare(a.at, b.at)) })
	var read candidates // those that have been read and not yielded
	for range window {
		for len(unread) > 0 && (len(read) == 0 || unread[0].least <= read[0].squared) {
			c := unread[0]
			unread = unread[1:]
			if !c.read {
				if err := ctx.Err(); err != nil {
					return false, err
				}
				x, err := s.storedVector(c.row.row, s.p.modality)
				if err != nil {
					return false, err
				}
				c.squared = squaredDistance(x, s.p.vector)
			}
			heap.Push(&read, c)
		}
		c := heap.Pop(&read).(*candidate)
		c.row.similarity = float32(1 / (1 + c.squared))
		if least := s.q.MinSimilarity; least != 0 && c.row.similarity < least {
			s.ended = true // so are those behind it, and outside the window nothing is compared
			return false, nil
		}
		h, err := s.hit(c.place)
		if err != nil {
			return false, err
		}
		if *k--; !yield(h, nil) || *k == 0 {
			return false, nil
		}
	}
	return true, nil
}

// boundWindow fills in the bounds of the window, from vectors in memory as far as there are any,
// and asks for them where there are not.
func (s *Searcher) boundWindow(window []candidate) {
	t := s.p.modality
	table, having := s.Cv.Vectors[t], s.Cv.Presence[t]
	var known []*candidate
	missing := false
	for i := range window {
		switch c := &window[i]; {
		case !having.Contains(c.row.row):
			c.least, c.squared, c.read = math.Inf(1), math.Inf(1), true
		case c.row.row < table.Rows():
			known = append(known, c)
		default:
			missing = true
		}
	}
	if missing && s.Cv.WantVectors(t) {
		s.tools.Wanted()
	}
	if len(known) == 0 {
		return
	}
	rows, least := make([]uint32, len(known)), make([]float64, len(known))
	for i, c := range known {
		rows[i] = c.row.row
	}
	table.AtLeast(quant.NewVectorQuery(s.p.vector.Value), least, rows)
	for i, c := range known {
		c.least = least[i]
	}
}

// squaredDistance returns the squared Euclidean distance of two vectors, both dense and
// of the same length, or both sparse. It adds up in float64, by ascending dimension, and
// leaves out dimensions that are zero in both: the dense and the sparse form of the same
// vectors have the same distance.
func squaredDistance(x, y model.Vector) (sum float64) {
	add := func(a, b float64) { sum += (a - b) * (a - b) }
	if x.IsSparse() { // so is y
		eachEntry(x, y, add)
		return sum
	}
	for j, v := range y.Value {
		add(float64(x.Value[j]), float64(v))
	}
	return sum
}

// eachEntry calls f with the entries of two sparse vectors, by ascending dimension. Where one of
// them has no entry it is 0.
func eachEntry(x, y model.Vector, f func(a, b float64)) {
	i, j := 0, 0
	for i < len(x.Index) && j < len(y.Index) {
		switch a, b := x.Index[i], y.Index[j]; {
		case a < b:
			f(float64(x.Value[i]), 0)
			i++
		case a > b:
			f(0, float64(y.Value[j]))
			j++
		default:
			f(float64(x.Value[i]), float64(y.Value[j]))
			i, j = i+1, j+1
		}
	}
	for _, v := range x.Value[i:] {
		f(float64(v), 0)
	}
	for _, v := range y.Value[j:] {
		f(0, float64(v))
	}
}
