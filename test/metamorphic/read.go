package metamorphic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

func (h *history) get(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if err := h.checkItem(c, handle, op.Key); err != nil {
		return err
	}
	if c.items[op.Key] == nil {
		return errPassed
	}
	return nil
}

// where compares what a filter finds.
func (h *history) where(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	n, err := handle.Count(h.ctx, op.Where.String())
	if !op.Where.valid(&c.schema) {
		return expect(err, db.ErrInvalid)
	}
	if err == nil && c.fresh {
		err = h.checkCollection(c, handle)
	}
	if err != nil {
		return err
	}
	want, err := c.matching(op.Where)
	if err != nil || n != len(want) {
		return wrong(err, "%d counted, want %d", n, len(want))
	}
	at := 0
	where, args := op.Where.bound()
	for it, err := range handle.Items(h.ctx, where, args...) {
		if err != nil {
			return err
		}
		if at == len(want) || it.Key != want[at] {
			return fmt.Errorf("%d that match is %q, of %q", at, it.Key, want)
		}
		if err := c.same(c.space(0), it.Key, it); err != nil {
			return err
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("%d match, want %d", at, len(want))
	}
	return nil
}

// A place is where the reading of an answer stopped.
type place struct {
	in    string
	c     *collection // as it was then
	query *Query
	next  string
	code  string
	last  oracle.Candidate
}

// first reads the first page of an answer. more continues with it later.
func (h *history) first(op *Op) error {
	s, err := h.ask(op, op.Query)
	if err != nil {
		return err
	}
	return errors.Join(s.first(op), s.done())
}

func (s *question) first(op *Op) error {
	res, err := s.nearest(s.k(), s.q.Plan)
	if err != nil {
		return err
	}
	if res.Next == "" || op.At != "" {
		return errPassed
	}
	last := res.Hits[len(res.Hits)-1]
	i := slices.IndexFunc(s.a.Candidates, func(h oracle.Candidate) bool { return h.Key == last.Key })
	s.h.cursors[op.Name] = &place{op.In, s.c, op.Query, res.Next, s.a.code, s.a.Candidates[i]}
	return nil
}

// more reads on, whatever was written since. It finds what lies behind the place now.
func (h *history) more(op *Op) error {
	p := h.cursors[op.Name]
	if p == nil {
		return errPassed
	}
	s, err := h.ask(&Op{In: p.in}, p.query)
	if err != nil {
		return err
	}
	return errors.Join(s.more(p, op.N), s.done())
}

func (s *question) more(p *place, n int) error {
	q := s.q
	q.After, q.K, q.Plan = p.next, max(n, 1), db.PlanAuto
	res, err := s.handle.Search(s.h.ctx, q)
	if s.c.born != p.c.born || s.a.Exact && s.a.code != p.code { // it is another query now
		return expect(err, db.ErrInvalid)
	}
	if !s.a.Exact { // the revision may be another one, or the key may have other codes
		if errors.Is(err, db.ErrInvalid) {
			return errPassed
		}
		return err
	}
	if err != nil {
		return err
	}
	var want []oracle.Candidate
	for _, h := range s.a.Candidates {
		inCode := h.Key != s.a.Self && (p.last.Key == s.a.Self || h.Row > p.last.Row)
		if h.Distance > p.last.Distance || h.Distance == p.last.Distance && (h.Age > p.last.Age || h.Age == p.last.Age && inCode) {
			want = append(want, h)
		}
	}
	behind := oracle.Answer{Candidates: want, Projection: s.a.Projection, Exact: s.a.Exact, Self: s.a.Self}
	if (res.Next != "") != (q.K < len(want)) {
		return fmt.Errorf("after %d of %d behind the place, next is %q", q.K, len(want), res.Next)
	}
	return behind.Check(res.Hits, q.K, -1, db.RerankProjection)
}
