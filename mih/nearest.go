package mih

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// A collector counts what a k-NN search finds. It belongs to the goroutine of the
// search.
//
// Its bound is the smallest distance within which the weights found so far add up to k.
// No code beyond the bound can be in the answer, and the bound only falls. While the
// weights do not add up to k, the bound is the length of the codes.
type collector struct {
	table     *Table                                // its cardinalities are the weights; nil: weight has them
	weight    func(number uint32, distance int) int // see [Query]; nil if table is set
	takeMore  func() int                            // calls take and returns the bound after it
	k         int                                   // results asked for
	bound     int                                   // bits
	sum       int                                   // weights within the bound
	histogram []int                                 // weights by distance
	found     []codec.Near
	taken     int          // number of first elements of found that are counted
	sorted    []codec.Near // scratch memory of appendTo
}

// start makes the collector ready for a search for k results among codes of q bits.
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

// weigh returns the number of results that code n stands for.
func (c *collector) weigh(n uint32, distance int) int {
	if c.table != nil {
		return c.table.Cardinality(n)
	}
	return c.weight(n, distance)
}

// take counts the codes appended to found since the last call. It drops those without a
// weight and those beyond the bound.
func (c *collector) take() {
	kept := c.found[:c.taken]
	var forms [256]uint8
	for part := range slices.Chunk(c.found[c.taken:], len(forms)) {
		if c.table != nil {
			c.table.readForms(forms[:], part, c.bound)
		}
		for i, x := range part {
			d := x.Distance()
			if d > c.bound {
				continue
			}
			w := int(forms[i])
			if c.table == nil || w == asBitmap {
				w = c.weigh(x.Position(), d)
			}
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
	}
	c.found, c.taken = kept, len(kept)
	if len(kept) > 1024 && len(kept)/8 > c.k {
		c.prune()
	}
}

// prune drops the codes that are beyond the bound by now.
func (c *collector) prune() {
	beyond := codec.NearOf(c.bound+1, 0)
	c.found = slices.DeleteFunc(c.found, func(x codec.Near) bool { return x >= beyond })
	c.taken = len(c.found)
}

// forget takes out the codes with numbers first to last-1, so that a scan can find all
// of them again. The bound stays true.
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

// appendTo appends the answer to dst, by distance and then by number.
func (c *collector) appendTo(dst []codec.Near) []codec.Near {
	c.prune()
	if len(c.found) > 64 { // fewer are sorted in full by appendByDistance
		c.found, c.sorted = sortByPosition(c.found, c.sorted)
	}
	return appendByDistance(dst, c.found, len(c.histogram)-1)
}

// sortByPosition sorts nears by position, whatever their distance. It returns them and
// scratch memory for the next call, which begins with the scratch memory of the last
// one. Callers list codes of one distance by number, and thousands of codes are sorted
// digit by digit faster than by comparisons.
func sortByPosition(nears, scratch []codec.Near) (sorted, rest []codec.Near) {
	const digit = 11
	largest := uint32(0)
	for _, x := range nears {
		largest = max(largest, x.Position())
	}
	to := slices.Grow(scratch[:0], len(nears))[:len(nears)]
	for shift := 0; shift < 32 && largest>>shift > 0; shift += digit {
		var starts [1<<digit + 1]uint32 // starts[d+1] counts digit d first
		for _, x := range nears {
			starts[x.Position()>>shift%(1<<digit)+1]++
		}
		for d := range 1 << digit {
			starts[d+1] += starts[d]
		}
		for _, x := range nears {
			at := &starts[x.Position()>>shift%(1<<digit)]
			to[*at] = x
			*at++
		}
		nears, to = to, nears
	}
	return nears, to
}

// done reports whether the answer is complete, given that every code within r bits has
// been found.
//
// Proof: let the bound D be at most r. Then all codes within D bits have been found.
// Their weights add up to k or more, and those of the codes within D-1 bits do not. So
// the codes within D bits are the answer. If the weights found so far do not add up to
// k, D is the length of the codes, and every code has been found.
func (c *collector) done(r int) bool { return c.bound <= r }

// Nearest appends to dst all codes within D bits of the query. D is the smallest
// distance within which the weights of the codes add up to k. If the weights of all
// codes add up to less, it appends every code that has a weight. So the codes at
// distance D come complete. They come by distance, and by number where distances are
// equal.
func (t *Table) Nearest(ctx context.Context, q *Query, k int, dst []codec.Near,
	explain *Explain) ([]codec.Near, error) {
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
			err = g.scanNearest(ctx, s)
		}
		if err != nil {
			return dst, err
		}
	}
	if s.explain.Plan == PlanCells && s.sum < s.k && q.Recall < 1 {
		// The cells have too few: all have to be found.
		exact := *q
		exact.Recall = 1
		return t.Nearest(ctx, &exact, k, dst, explain)
	}
	start := len(dst)
	dst = s.appendTo(dst)
	s.explain.Found = len(dst) - start
	s.explainTo(explain)
	return dst, nil
}

// begin starts a k-NN search. By PlanFilter it does all the work. By any other plan it
// scans the tail, which has to be read anyway and gives a bound.
func (s *search) begin(ctx context.Context, q *Query, k int) error {
	t := s.t
	if q.Filter == nil && q.Weight == nil {
		s.start(t.bits, min(k, t.items+1), t, nil) // no k is so large that sums overflow
	} else {
		s.start(t.bits, k, nil, func(n uint32, d int) int { return q.weight(t, n, d) })
	}
	plan, predicted := q.Plan, 0.0
	if plan == PlanAuto {
		if plan, predicted = t.plan(q, -1); k >= t.items {
			plan = PlanScan
		}
	}
	s.mayScan, s.recall = q.Plan == PlanAuto, 0
	if q.Recall > 0 && q.Recall < 1 && q.Plan == PlanAuto && q.Weight == nil {
		s.recall, s.filtered = q.Recall, 0
		if q.Filter != nil {
			s.filtered = q.Filter.GetCardinality()
		}
	}
	s.explain.Plan, s.explain.Predicted = plan, time.Duration(predicted)
	switch {
	case plan == PlanFilter:
	case s.table != nil:
		s.explain.Tail = t.tail.Len()
		return s.scanNearest(ctx, t.tail, nil, t.tailFirst)
	default:
		return s.scanTail(ctx, s.takeMore, s.bound)
	}
	err := s.filter(ctx, q, t.bits)
	s.take()
	return err
}

// visit searches a segment by lookups, if that is the plan. It reports whether the
// segment must be scanned: because lookups are not the plan, or because they gave up.
func (s *search) visit(ctx context.Context, g *segment) (scan bool, err error) {
	if s.explain.Plan == PlanFilter {
		return false, nil
	}
	if probes := s.probes(g); probes > 0 {
		return false, g.probe(ctx, s, probes)
	}
	s.explain.Substrings = append(s.explain.Substrings, g.split.Len())
	if s.explain.Plan != PlanMemory || g.bare || s.mayScan && s.t.codesOf(s.k) > g.costs.most {
		return true, nil
	}
	abandoned, err := s.lookUp(ctx, g)
	if abandoned {
		s.explain.Abandoned = true
		s.forget(g.first, g.last)
	}
	return abandoned, err
}

// codesOf returns how many codes k rows have in the mean.
func (t *Table) codesOf(k int) int {
	return int(math.Ceil(float64(min(k, t.items)) * float64(t.used) / float64(max(t.items, 1))))
}

// lookUp searches a segment by growing radii. It reports whether it gave up because a
// scan is predicted to take less time than the remaining radii.
func (s *search) lookUp(ctx context.Context, g *segment) (abandoned bool, err error) {
	c := &s.collector
	s.enter(g)
	s.before = append(s.before[:0], c.histogram...)
	candidates, began := s.explain.Candidates, time.Now()
	for rings := 0; rings == 0 || !c.done(rings-1); {
		goal := max(g.split.Len()/2, 1)
		if rings > 0 {
			// A code found within a radius that is too small is found again within a
			// larger one, and has to be told from new codes. So the radius grows at
			// once to where the search seems to end, if that is not far away.
			end := g.reach.bound(rings-1, c.k, c.bound, c.histogram, s.before)
			goal = max(rings+1, min(end+1, max(rings+rings/2, g.split.Len())))
			if s.mayScan && rings >= g.split.Len() && !g.costs.worthGoingOnNearest(rings, end,
				s.explain.Candidates-candidates, float64(time.Since(began))) {
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
