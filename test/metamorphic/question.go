package metamorphic

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

var plans = map[string]db.Plan{
	"": db.PlanAuto, "memory": db.PlanMemory, "scan": db.PlanScan, "filter": db.PlanFilter, "disk": db.PlanDisk, "blockscan": db.PlanBlockScan,
}

var planNames = []string{"", "memory", "scan", "filter", "disk", "blockscan"}

// A question is a query with its right answer. done must be called at the end.
type question struct {
	h      *history
	c      *collection
	handle *db.Collection
	q      db.Query
	a      *answer
	done   func() error
}

// ask prepares a query. The error is a failure, or errPassed if the query got its
// predicted error.
func (h *history) ask(op *Op, query *Query) (*question, error) {
	c, handle, err := h.collection(op)
	if err != nil {
		return nil, err
	}
	s := &question{h: h, c: c, handle: handle, done: func() error { return nil }}
	if (h.learns() || len(c.indexes) > 0) && op.At == "" { // projections and indexes must not change meanwhile
		snap, err := h.d.Snapshot()
		if err != nil {
			return nil, err
		}
		s.done = snap.Close
		if s.handle, err = snap.Collection(op.In); err != nil {
			return nil, errors.Join(err, snap.Close())
		}
	}
	if err = s.prepare(query); err != nil {
		return nil, errors.Join(err, s.done())
	}
	return s, nil
}

func (s *question) prepare(query *Query) error {
	c, number := s.c, s.c.numberOf(query.Space)
	if err := s.known(number); err != nil {
		return err
	}
	s.q = db.Query{
		From: query.From, To: query.To, Key: query.Key, ExcludeSelf: query.Exclude, Space: number, Where: query.Where.String(), K: query.K,
		Plan: plans[query.Plan], Recall: query.Recall,
	}
	var err error
	if s.q.Rerank, err = db.ParseRerank(cmp.Or(query.Rerank, "projection")); err != nil {
		return err
	}
	if query.Vector != nil {
		x := vectorOf(c.modality(query.From), *query.Vector)
		if query.Sparse {
			v := sparseOf(x)
			s.q.Sparse = &v
		} else {
			s.q.Vector = x
		}
	}
	if query.Code != nil {
		bits := 8
		if sp := c.space(number); sp != nil {
			bits = sp.bits
		}
		s.q.Code = codeOf(bits, *query.Code)
	}
	sp := c.space(number)
	if number == 0 && sp == nil && s.q.Rerank == db.RerankAuto || sp != nil && query.Recall > 0 {
		return s.untrained(query)
	}
	var want error
	s.a, want = c.find(query, func(space db.Space, from string, x []float32) ([]byte, []float64, error) {
		return s.handle.EncodeQuery(s.h.ctx, db.Query{From: from, Vector: x, Space: space})
	})
	if want != nil && !errors.Is(want, db.ErrInvalid) && !errors.Is(want, db.ErrNoModel) && !errors.Is(want, db.ErrNotFound) {
		return want
	}
	if want == nil {
		return oracle.Signs(s.a.code, s.a.Projection)
	}
	_, serr := s.handle.Search(s.h.ctx, s.q)
	_, rerr := s.handle.SearchRadius(s.h.ctx, s.q, 3)
	for _, err := range []error{serr, rerr} {
		for _, of := range []error{db.ErrInvalid, db.ErrNoModel, db.ErrNotFound} {
			if errors.Is(want, of) && !errors.Is(err, of) {
				return fmt.Errorf("the error is %v, not %v", err, of)
			}
		}
	}
	return errPassed
}

// known asks the database for the codes that only it can know.
func (s *question) known(number db.Space) error {
	sp := s.c.space(number)
	if sp == nil {
		return nil
	}
	unsettled := s.c.fresh
	for _, c := range sp.codes {
		unsettled = unsettled || !c.settled
	}
	if !unsettled {
		return nil
	}
	if s.c.fresh {
		return s.h.checkCollection(s.c, s.handle)
	}
	in, err := s.handle.InSpace(sp.number)
	if err != nil {
		return err
	}
	return s.h.checkItems(s.c, sp, in)
}

// affordable returns another plan instead of lookups in the store, if a sure answer of
// k items, or within a radius, would take too many of them.
func (s *question) affordable(plan db.Plan, k, radius int) db.Plan {
	if plan != db.PlanDisk {
		return plan
	}
	if radius < 0 {
		if k >= len(s.a.Candidates) {
			if s.a.sp.bits <= 8 {
				return plan
			}
			return db.PlanAuto
		}
		for _, h := range s.a.Candidates[:k+1] {
			radius = max(radius, h.Distance)
		}
	}
	tables := (s.a.sp.bits + 15) / 16
	width, each := s.a.sp.bits/tables, 1
	lookups := 1
	for r := 1; r <= radius/tables && r <= width; r++ {
		each = each * (width - r + 1) / r
		lookups += each
	}
	if lookups*tables > 3000 {
		return db.PlanAuto
	}
	return plan
}

func (s *question) k() int {
	if s.q.K == 0 {
		return 10
	}
	return s.q.K
}

// nearest calls Search and compares its result with the right answer.
func (s *question) nearest(k int, plan db.Plan) (*db.Result, error) {
	q := s.q
	q.K, q.Plan = k, s.affordable(plan, k, -1)
	res, err := s.handle.Search(s.h.ctx, q)
	if err != nil {
		return nil, err
	}
	if res.Space != s.a.sp.number || res.Revision != s.a.sp.revision && !s.h.learns() && !s.c.codesOnly() {
		return nil, fmt.Errorf("an answer of space %d, revision %d, want %d, %d", res.Space, res.Revision, s.a.sp.number, s.a.sp.revision)
	}
	if (res.Next != "") != (k < len(s.a.Candidates)) {
		return nil, fmt.Errorf("after %d of %d, next is %q", k, len(s.a.Candidates), res.Next)
	}
	if err := s.a.Check(res.Hits, k, -1, q.Rerank); err != nil {
		return nil, fmt.Errorf("plan %v: %w", q.Plan, err)
	}
	return res, nil
}
