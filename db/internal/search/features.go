package search

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
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

// A featured hit is a hit of the window with the squared Euclidean distance of its vector
// from that of the query.
type featured struct {
	Hit
	squared float64 // +Inf if the item lacks the modality, so that it comes last
}

// featuresFirst yields up to k items. The first window of them, in the order of byCode,
// come sorted by features, once all are read; the sort is stable, so that equal distances
// stay as they were. The others follow as byCode has them. A hit of the window costs the
// reading of a vector.
func (s *Searcher) featuresFirst(ctx context.Context, k int) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		var window []featured
		sorted := false
		// give sorts and yields the window, and reports whether the caller wants more.
		give := func() bool {
			slices.SortStableFunc(window, func(a, b featured) int { return cmp.Compare(a.squared, b.squared) })
			sorted = true
			for _, f := range window {
				f.Similarity = float32(1 / (1 + f.squared))
				if least := s.q.MinSimilarity; least != 0 && f.Similarity < least {
					return false // so are those behind it, and outside the window nothing is compared
				}
				if k--; !yield(f.Hit, nil) || k == 0 {
					return false
				}
			}
			return true
		}
		n := s.window()
		for h, err := range s.byCode(ctx, max(k, n)) {
			squared := 0.0
			if err == nil && !sorted {
				squared, err = s.squaredDistance(h.Row)
			}
			if err != nil {
				yield(Hit{}, err)
				return
			}
			if sorted {
				h.Similarity = none
				if k--; !yield(h, nil) || k == 0 {
					return
				}
				continue
			}
			if window = append(window, featured{h, squared}); len(window) == n && !give() {
				return
			}
		}
		if !sorted {
			give()
		}
	}
}

// squaredDistance returns the squared Euclidean distance from the vector of a row to that
// of the query, +Inf if the item lacks the modality. A vector that must be there and is
// not is fault.ErrCorrupt.
func (s *Searcher) squaredDistance(row uint32) (float64, error) {
	t := s.p.modality
	if !s.Cv.Presence[t].Contains(row) {
		return math.Inf(1), nil
	}
	m := s.Cv.Modalities[t]
	x, found, err := record.ReadVector(s.V.Snap, s.Cv.ID, row, t, m)
	if err == nil && !found {
		err = fault.Corrupt(errors.New("missing"), "features %q of row %d", m.Name, row)
	}
	if err != nil {
		return 0, err
	}
	return squaredDistance(x, s.p.vector), nil
}

// squaredDistance returns the squared Euclidean distance of two vectors, both dense and
// of the same length, or both sparse. It adds up in float64, by ascending dimension, and
// leaves out dimensions that are zero in both: the dense and the sparse form of the same
// vectors have the same distance.
func squaredDistance(x, y model.Vector) (sum float64) {
	add := func(d float64) { sum += d * d }
	if !x.IsSparse() { // nor is y
		for j, v := range y.Value {
			add(float64(x.Value[j]) - float64(v))
		}
		return sum
	}
	i, j := 0, 0
	for i < len(x.Index) && j < len(y.Index) {
		switch a, b := x.Index[i], y.Index[j]; {
		case a < b:
			add(float64(x.Value[i]))
			i++
		case a > b:
			add(float64(y.Value[j]))
			j++
		default:
			add(float64(x.Value[i]) - float64(y.Value[j]))
			i, j = i+1, j+1
		}
	}
	for _, v := range x.Value[i:] {
		add(float64(v))
	}
	for _, v := range y.Value[j:] {
		add(float64(v))
	}
	return sum
}
