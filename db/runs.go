package db

import (
	"context"
	"iter"
	"math"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Runs is the answer to a search by radius: all items within it, as a sequence of runs of items that share a
// code. It shows the state that was searched, and keeps that state until it is closed. It is safe for
// concurrent use, except for Close.
type Runs struct {
	s      *search.Searcher
	wanted wanted // of the query
	pin    *state.Pin
}

// A Run is all hits that share one code.
type Run struct {
	Distance int
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // of the items, ascending; only as Runs.All yields it
}

// Total returns the number of items, items before the cursor of the query included.
func (r *Runs) Total() int { return r.s.Total }

// Close frees the state that the runs hold. A second call returns ErrClosed.
func (r *Runs) Close() error {
	if !r.pin.Release() {
		return state.ErrReleased
	}
	return nil
}

// All yields the runs in order, without reading items, from the cursor of the query on. An error ends it.
func (r *Runs) All(ctx context.Context) iter.Seq2[Run, error] {
	return yielding(func(yield func(Run) error) error {
		return r.read(func(s *search.Searcher) error {
			for r, err := range s.EachRun(ctx) {
				if err == nil {
					err = yield(Run{Distance: r.Distance, Score: r.Score, Rows: r.Rows})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Hits yields the items in order. It orders the items of a run, and reads their keys, when it reaches the run.
// An error ends it.
func (r *Runs) Hits(ctx context.Context) iter.Seq2[Hit, error] {
	return yielding(func(yield func(Hit) error) error {
		return r.read(func(s *search.Searcher) error {
			for h, err := range s.Hits(ctx, math.MaxInt) {
				var hit Hit
				if err == nil {
					hit, err = hitOf(s, r.wanted, &h)
				}
				if err == nil {
					err = yield(hit)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Distances returns the number of items at each distance: element d counts the items at d bits, up to the
// radius or the length of a code, if that is less. The sum is Total. It looks at each found code, and at no
// item. The caller owns the slice.
func (r *Runs) Distances(ctx context.Context) (counts []int, err error) {
	err = r.read(func(s *search.Searcher) (err error) {
		counts, err = s.Distances(ctx)
		return err
	})
	return counts, err
}

// First returns the first k items, behind the cursor of the query if it has one.
func (r *Runs) First(ctx context.Context, k int) (*Result, error) {
	if k < 1 {
		return nil, fault.Invalid("k = %d: 1 or more are possible", k)
	}
	var res *Result
	err := r.read(func(s *search.Searcher) (err error) {
		res, _, err = resultOf(ctx, s, k, r.wanted)
		return err
	})
	return res, err
}

// read gives f a searcher with the answer, to be used by one goroutine.
func (r *Runs) read(f func(s *search.Searcher) error) error {
	return r.pin.Read(func(*state.View) error {
		s := r.s.Again()
		defer s.Close()
		return f(s)
	})
}
