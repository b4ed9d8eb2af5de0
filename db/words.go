package db

import (
	"context"
	"math"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// starts reports whether the query starts from a vector, an item or a code.
func (q *Query) starts() bool {
	return q.Vector != nil || q.Sparse != nil || q.Key != "" || q.Code != nil
}

// byWords answers a query with Words, alone or beside what it starts from.
func (c *Collection) byWords(ctx context.Context, v *state.View, cv *state.CollectionView,
	q Query) (*Result, mih.Plan, error) {
	switch {
	case q.K < 0:
		return nil, PlanAuto, fault.Invalid("k = %d: 1 or more are possible", q.K)
	case q.After != "":
		return nil, PlanAuto, fault.Invalid(
			"words: an answer by words has no cursor: leave out After, and ask for more with K")
	case q.MinSimilarity != 0:
		return nil, PlanAuto, fault.Invalid(
			"words: items found by words have no similarity: leave out MinSimilarity")
	}
	if err := q.check(); err != nil {
		return nil, PlanAuto, err
	}
	list := max(100, 4*min(q.K, math.MaxUint32)) // of each of the two lists
	r, plan := &Result{}, PlanAuto
	nearest := map[uint32]search.Hit{}
	var s *search.Searcher
	var order []uint32
	var err error
	if q.starts() {
		near := q
		near.K = list
		if s, err = c.searcher(ctx, v, cv, &near); err != nil {
			return nil, plan, err
		}
		defer s.Close()
		if err = s.Nearest(ctx, s.ToFind(list)); err != nil {
			return nil, plan, err
		}
		hits, a, err := search.First(ctx, s, list, func(h *search.Hit) (search.Hit, error) { return *h, nil })
		if err != nil {
			return nil, plan, err
		}
		s.Observe(a)
		for _, h := range hits {
			nearest[h.Row] = h
			order = append(order, h.Row)
		}
		r.Space, r.Revision = Space(a.Space), a.Revision
		r.Rerank, r.Approximate = Rerank(s.Order()), s.Approximate()
		plan = s.How().Plan
	} else if s, err = search.NewWords(c.db.search, v, cv, q.inside()); err != nil {
		return nil, plan, err
	}
	found, err := s.ByWords(ctx, q.Words, list)
	if err != nil {
		return nil, plan, err
	}
	if q.starts() {
		found = search.Fuse(order, found)
	}
	wanted := q.wanted()
	wanted.include &^= IncludeCursor
	found = found[:min(q.K, len(found))]
	r.Hits = make([]Hit, 0, len(found))
	for _, x := range found {
		h, there := nearest[x.Row]
		if !there {
			if h, err = s.HitOf(x); err != nil {
				return nil, plan, err
			}
		}
		h.Score = x.Score
		hit, err := hitOf(s, wanted, &h)
		if err != nil {
			return nil, plan, err
		}
		r.Hits = append(r.Hits, hit)
	}
	if q.Include&IncludeExplain != 0 && q.starts() {
		r.Explain = s.Report(len(r.Hits))
	}
	r.Facets, err = wanted.count(ctx, s, r.Hits)
	return r, plan, err
}
