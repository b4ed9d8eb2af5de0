package db

import (
	"context"
	"iter"
	"math"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Runs is the answer to a search by radius: all items within it, as a sequence of
// runs, each of the items that share a code. It shows the collection as it was
// when it was made, and keeps that until it is closed. Safe for concurrent use, if
// nobody closes it meanwhile.
type Runs struct {
	s   *search.Searcher
	pin *state.Pin
}

// A Run is all hits that share one code.
type Run struct {
	Distance int
	Score    float64  // of the code; NaN for a query by code
	Rows     []uint32 // of the items, ascending; only as Runs.All yields it
}

// Total returns the number of items, also of those before the cursor of the
// query.
func (r *Runs) Total() int { return r.orNone().s.Total }

// Close frees what the runs hold. A second call returns ErrClosed.
func (r *Runs) Close() error {
	r = r.orNone()
	if !r.pin.Release() {
		return fault.ErrClosed
	}
	return nil
}

// All yields the runs in order, without looking at their items; of the run in
// which the cursor of the query is, what follows it. An error ends it.
func (r *Runs) All(ctx context.Context) iter.Seq2[Run, error] {
	r = r.orNone()
	return func(yield func(Run, error) bool) {
		err := r.read(func(s *search.Searcher) error {
			for r, err := range s.EachRun(ctx) {
				if err != nil {
					return err
				}
				if !yield(Run{Distance: r.Distance, Score: r.Score, Rows: r.Rows}, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Run{}, err)
		}
	}
}

// Hits yields the items in order, putting those of a run in order and reading
// their keys when it is reached. An error ends it.
func (r *Runs) Hits(ctx context.Context) iter.Seq2[Hit, error] {
	r = r.orNone()
	return func(yield func(Hit, error) bool) {
		err := r.read(func(s *search.Searcher) error {
			for h, err := range s.Hits(ctx, math.MaxInt) {
				if err != nil {
					return err
				}
				if !yield(Hit(h), nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(Hit{}, err)
		}
	}
}

// First returns the first k items, behind the cursor of the query if it has one.
func (r *Runs) First(ctx context.Context, k int) (*Result, error) {
	r = r.orNone()
	if k < 1 {
		return nil, fault.Invalid("k = %d: 1 or more are possible", k)
	}
	var res *Result
	err := r.read(func(s *search.Searcher) error {
		res = new(Result)
		return res.fill(ctx, s, k)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// read gives f a searcher with the answer, to be used by one goroutine.
func (r *Runs) read(f func(s *search.Searcher) error) error {
	return r.pin.Read(func(*state.View) error {
		s := r.s.Again()
		defer s.Close()
		return f(s)
	})
}

// Neighbors yields all items in the order of a Result, nearest first, reading no
// further than they are asked for: whoever does not know how many neighbours are
// wanted stops the iteration. Query.K is ignored. An error ends it.
func (c *Collection) Neighbors(ctx context.Context, q Query) iter.Seq2[Hit, error] {
	c = c.orNone()
	return func(yield func(Hit, error) bool) {
		stopped, hits := false, 0
		ctx, call := c.db.state.Signals.Call(ctx, event.OpNeighbors, c.name)
		var err error
		defer func() { c.db.counters.iterated(&call, hits, err) }() // if whoever reads panics, too
		err = c.read(func(v *state.View, cv *state.CollectionView) error {
			s, err := c.searcher(ctx, v, cv, &q)
			if err != nil {
				return err
			}
			defer s.Close()
			for h, err := range s.All(ctx) {
				if err != nil {
					return err
				}
				hits++
				if stopped = !yield(Hit(h), nil); stopped {
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(Hit{}, err)
		}
	}
}
