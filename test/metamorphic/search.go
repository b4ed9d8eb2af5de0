package metamorphic

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// newRand returns the random numbers of a seed.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func (h *history) search(op *Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.search(op.Seed), s.done())
}

func (s *question) search(seed uint64) error {
	res, err := s.nearest(s.k(), s.q.Plan)
	if err != nil {
		return err
	}
	other := plans[planNames[seed%6]]
	again, err := s.nearest(s.k(), other)
	if err != nil {
		return err
	}
	if !oracle.SameHits(res.Hits, again.Hits) {
		return fmt.Errorf("plan %v: %v; plan %v: %v", s.q.Plan, res.Hits, other, again.Hits)
	}
	q := s.q
	q.Plan = s.affordable(q.Plan, s.k(), -1)
	_, explained, err := s.handle.Explain(s.h.ctx, q, -1)
	if err != nil {
		return err
	}
	if !oracle.SameHits(res.Hits, explained.Hits) {
		return fmt.Errorf("%v; explained: %v", res.Hits, explained.Hits)
	}
	return nil
}

// radius compares every kind of question about what lies within a radius.
func (h *history) radius(op *Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.within(op.Radius), s.done())
}

func (s *question) within(radius int) error {
	q := s.q
	q.Plan = s.affordable(q.Plan, 0, radius)
	want := s.a.Within(radius)
	runs, err := s.handle.SearchRadius(s.h.ctx, q, radius)
	if err != nil {
		return err
	}
	if err := s.runs(runs, radius, want); err != nil {
		return errors.Join(err, runs.Close())
	}
	return runs.Close()
}

func (s *question) runs(runs *db.Runs, radius, want int) error {
	if runs.Total() != want {
		return fmt.Errorf("%d in all within %d, want %d", runs.Total(), radius, want)
	}
	distances, err := runs.Distances(s.h.ctx)
	if err != nil {
		return err
	}
	within := 0
	for d, n := range distances {
		if within += n; within != s.a.Within(d) {
			return fmt.Errorf("distances %v: %d within %d, want %d", distances, within, d, s.a.Within(d))
		}
	}
	hits, err := collect(runs.Hits(s.h.ctx), -1)
	if err != nil {
		return err
	}
	first, err := runs.First(s.h.ctx, s.k())
	if err != nil {
		return err
	}
	if !oracle.SameHits(first.Hits, hits[:min(s.k(), len(hits))]) || first.Total != want {
		return fmt.Errorf("the first %d within %d are %v, the hits %v", s.k(), radius, first.Hits, hits)
	}
	if err := s.a.Check(hits, len(s.a.Candidates)+1, radius, s.q.Rerank); err != nil {
		return fmt.Errorf("plan %v, within %d: %w", s.q.Plan, radius, err)
	}
	at := 0
	for run, err := range runs.All(s.h.ctx) {
		if err != nil {
			return err
		}
		var rows []uint32
		for range run.Rows {
			if at == len(hits) || hits[at].Distance != run.Distance {
				return fmt.Errorf("run %+v is not the hits from %d on: %v", run, at, hits)
			}
			rows = append(rows, hits[at].Row)
			at++
		}
		if slices.Sort(rows); !slices.Equal(rows, run.Rows) {
			return fmt.Errorf("a run of rows %d, the hits have %d", run.Rows, rows)
		}
	}
	if at != len(hits) {
		return fmt.Errorf("runs of %d rows, %d hits", at, len(hits))
	}
	return nil
}

// collect returns the first n hits of seq; all of them if n is negative.
func collect(seq iter.Seq2[db.Hit, error], n int) ([]db.Hit, error) {
	var hits []db.Hit
	for h, err := range seq {
		if err != nil {
			return nil, err
		}
		if hits = append(hits, h); len(hits) == n {
			break
		}
	}
	return hits, nil
}

// pages reads an answer page by page, each with another plan.
func (h *history) pages(op *Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.pages(op.Radius, op.N, op.Seed), s.done())
}

func (s *question) pages(radius, size int, seed uint64) error {
	r := newRand(seed)
	q := s.q
	var all []db.Hit
	for {
		q.K = 1 + r.IntN(max(1, size))
		q.Plan = s.affordable(plans[planNames[r.IntN(6)]], len(all)+q.K, radius)
		var res *db.Result
		var err error
		if radius < 0 {
			res, err = s.handle.Search(s.h.ctx, q)
		} else {
			_, res, err = s.handle.Explain(s.h.ctx, q, radius)
		}
		if err != nil {
			return err
		}
		if len(res.Hits) != q.K && res.Next != "" || len(all) > len(s.a.Candidates) {
			return fmt.Errorf("a page of %d hits for k = %d after %d of %d", len(res.Hits), q.K, len(all), len(s.a.Candidates))
		}
		all = append(all, res.Hits...)
		if res.Next == "" {
			return s.a.Check(all, len(s.a.Candidates)+1, radius, q.Rerank)
		}
		q.After = res.Next
	}
}

// searchAll compares the answers to many queries in one call with the answer to each.
func (h *history) searchAll(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if h.learns() && op.At == "" {
		return errPassed
	}
	var queries []db.Query
	var want []*db.Result
	for i := range op.Queries {
		s, err := h.ask(op, &op.Queries[i])
		if errors.Is(err, errPassed) {
			continue
		}
		if err != nil {
			return err
		}
		s.q.Plan = s.affordable(s.q.Plan, s.k(), -1)
		res, err := s.nearest(s.k(), s.q.Plan)
		if err != nil {
			return err
		}
		queries, want = append(queries, s.q), append(want, res)
	}
	got, err := handle.SearchAll(h.ctx, queries)
	if err != nil || len(got) != len(want) {
		return wrong(err, "%d answers to %d queries", len(got), len(want))
	}
	for i, res := range got {
		if !oracle.SameHits(res.Hits, want[i].Hits) || res.Next != want[i].Next {
			return fmt.Errorf("query %d among others: %v; alone: %v", i, res.Hits, want[i].Hits)
		}
	}
	if len(c.items) == 0 || len(queries) == 0 {
		return errPassed
	}
	return nil
}
