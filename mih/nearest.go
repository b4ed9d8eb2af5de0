package mih

import (
	"context"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// A collector counts what a k-NN search finds. Its bound is the smallest distance
// within which the weights found so far add up to k: no code beyond it can be in
// the answer, and it only falls. As long as they do not add up to k it is the
// length of the codes.
type collector struct {
	table     *Table // whose cardinalities are the weights; nil: see weight
	weight    func(number uint32, distance int) int
	takeMore  func() int // take, and the bound after it
	k         int
	bound     int
	sum       int   // weights within the bound
	histogram []int // weights by distance
	found     []codec.Near
	taken     int // of found, that are counted
}

// start makes the collector ready for a search in codes of q bits.
func (c *collector) start(q, k int, table *Table, weight func(uint32, int) int) {
	if c.takeMore == nil { // collectors are used again
		c.takeMore = func() int { c.take(); return c.bound }
	}
	if len(c.histogram) <= q {
		c.histogram = make([]int, q+1)
	}
	clear(c.histogram)
	c.table, c.weight, c.k, c.bound, c.sum = table, weight, k, q, 0
	c.found, c.taken = c.found[:0], 0
}

// weigh says how many results a code stands for.
func (c *collector) weigh(n uint32, distance int) int {
	if c.table != nil {
		return c.table.Cardinality(n)
	}
	return c.weight(n, distance)
}

// take counts what found has gained and drops what has no weight or lies beyond
// the bound.
func (c *collector) take() {
	kept := c.found[:c.taken]
	for _, x := range c.found[c.taken:] {
		d := x.Distance()
		if d > c.bound {
			continue
		}
		w := c.weigh(x.Position(), d)
		if w <= 0 {
			continue
		}
		kept = append(kept, x)
		c.histogram[d] += w
		c.sum += w
		for c.bound > 0 && c.sum-c.histogram[c.bound] >= c.k {
			c.sum -= c.histogram[c.bound]
			c.bound--
		}
	}
	c.found, c.taken = kept, len(kept)
	if len(kept) > 1024 && len(kept)/8 > c.k {
		c.prune()
	}
}

// prune drops what has fallen beyond the bound.
func (c *collector) prune() {
	beyond := codec.NearOf(c.bound+1, 0)
	c.found = slices.DeleteFunc(c.found, func(x codec.Near) bool { return x >= beyond })
	c.taken = len(c.found)
}

// forget takes out the codes with numbers first to last-1, of which some have
// been found, for a scan to find them all. The bound stays true.
func (c *collector) forget(first, last uint32) {
	c.found = slices.DeleteFunc(c.found, func(x codec.Near) bool {
		n := x.Position()
		if n < first || n >= last {
			return false
		}
		if d := x.Distance(); d <= c.bound {
			w := c.weigh(n, d)
			c.histogram[d] -= w
			c.sum -= w
		}
		return true
	})
	c.taken = len(c.found)
}

// appendTo appends the answer by distance.
func (c *collector) appendTo(dst []codec.Near) []codec.Near {
	c.prune()
	return appendByDistance(dst, c.found, len(c.histogram)-1)
}

// done reports whether every code within the bound has been found when every code
// within r bits has.
//
// Proof: if the bound D is at most r, all codes within D bits have been found, and
// their weights add up to k or more, while those within D-1 bits do not: so the
// codes within D bits are the answer. If weights found so far do not add up to k,
// the bound is still the length of the codes.
func (c *collector) done(r int) bool { return c.bound <= r }

// Nearest appends to dst all codes within D bits of the query, D being the
// smallest distance within which the weights of the codes add up to k; all codes
// that have a weight where they do not. So the codes of the last distance come
// complete. They come by distance, in any order where that is the same.
func (t *Table) Nearest(ctx context.Context, q *Query, k int, dst []codec.Near, explain *Explain) ([]codec.Near, error) {
	if k <= 0 {
		return dst, nil
	}
	s := t.newSearch(q.Code)
	defer s.release()
	if err := s.begin(ctx, q, k); err != nil {
		return dst, err
	}
	for _, g := range t.segments {
		scan, err := s.visit(ctx, g)
		if scan && err == nil {
			err = g.scan(ctx, s, s.bound, s.takeMore)
		}
		if err != nil {
			return dst, err
		}
	}
	start := len(dst)
	dst = s.appendTo(dst)
	s.explain.Found = len(dst) - start
	s.explainTo(explain)
	return dst, nil
}

// begin starts a k-NN search: with the tail, which has to be read in any case and
// gives a bound, or with all that there is to do where the filter leads.
func (s *search) begin(ctx context.Context, q *Query, k int) error {
	t := s.t
	if q.Filter == nil && q.Weight == nil {
		s.start(t.bits, k, t, nil)
	} else {
		s.start(t.bits, k, nil, func(n uint32, d int) int { return q.weight(t, n, d) })
	}
	plan, predicted := q.Plan, 0.0
	if plan == PlanAuto {
		if plan, predicted = t.plan(q, -1); k >= t.items {
			plan = PlanScan
		}
	}
	s.mayScan = q.Plan == PlanAuto
	s.explain.Plan, s.explain.Predicted = plan, time.Duration(predicted)
	if plan != PlanFilter {
		return s.scanTail(ctx, s.takeMore, s.bound)
	}
	err := s.filter(ctx, q, t.bits)
	s.take()
	return err
}

// visit searches a segment by lookups, if that is the plan. It reports whether
// the segment has to be scanned: instead of that, or because it gave up.
func (s *search) visit(ctx context.Context, g *segment) (scan bool, err error) {
	if s.explain.Plan == PlanFilter {
		return false, nil
	}
	s.explain.Substrings = append(s.explain.Substrings, g.split.Len())
	if s.explain.Plan != PlanMemory || g.bare || s.mayScan && g.costs.between(0, g.split.Len()-1, 1) > g.costs.nearest {
		return true, nil
	}
	abandoned, err := s.lookUp(ctx, g)
	if abandoned {
		s.explain.Abandoned = true
		s.forget(g.first, g.last)
	}
	return abandoned, err
}

// lookUp searches a segment by growing radii. It reports whether it gave up because
// a scan is predicted to be cheaper than what is left.
func (s *search) lookUp(ctx context.Context, g *segment) (abandoned bool, err error) {
	c := &s.collector
	s.enter(g)
	s.before = append(s.before[:0], c.histogram...)
	candidates := s.explain.Candidates
	for rings := 0; rings == 0 || !c.done(rings-1); {
		goal := max(g.split.Len()/2, 1)
		if rings > 0 {
			// What is found within a radius that is too small has to be told from
			// the rest again for a larger one. So the radius grows to where the end
			// seems to be, if that is not far away.
			end := g.reach.bound(rings-1, c.k, c.bound, c.histogram, s.before)
			goal = max(rings+1, min(end+1, max(rings+rings/2, g.split.Len())))
			if s.mayScan && rings >= g.split.Len() && !g.costs.worthGoingOnNearest(rings, end, s.explain.Candidates-candidates) {
				return true, nil
			}
		}
		for ; rings < goal; rings++ {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			g.lookUp(s)
		}
		if abandoned, err := g.cover(ctx, s, c.bound, s.takeMore, s.mayScan); abandoned || err != nil {
			return abandoned, err
		}
	}
	return false, nil
}
