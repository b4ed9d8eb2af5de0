package mih

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// costs predict the time that a search of one segment takes, in nanoseconds. calibrate
// measures them when the segment is built, with searches for a sample of the segment's
// own codes: no formula knows how full the buckets near a code are, nor what cache
// misses cost. They do not change afterwards.
type costs struct {
	scan float64 // to read all codes
	most int     // largest number of nearest codes that lookups find in less time, in the mean

	// nearest is the time of a k-NN search that finds all, for k = 4, 16, 64 and so on; for
	// a greater k it is that of a scan.
	nearest []float64

	// Sums over the radii 0 to r-1, as means over the sample: the time of the lookups,
	// the time of comparing candidates, and the number of candidates.
	lookups, compares, found []float64
	pace                     float64 // measured time of comparisons by the rough estimate in rings.go
}

const (
	// The fixed cost of every search. It keeps a plan from being chosen for less.
	overhead = 150
	// Lookups that take at most this share of a scan are always tried.
	cheap = .15

	// A k-NN search goes on in any case while it takes about this share of a scan.
	early = .25
	// A scan after lookups takes so many times as long as one after another scan: the
	// tables have driven the codes out of the caches.
	afterLookups = 2

	// Codes of a segment that calibrate searches for.
	sampleQueries = 96
	measuredParts = 6
	// Radii are measured until one costs enoughScans scans, or until measureFor is
	// over.
	enoughScans = 2
	measureFor  = time.Second
)

// calibrate measures costs and reach, and the recall of cells. It stops to measure costs
// shortly after measureFor; radii that it has not reached by then count as slower than a
// scan.
func (g *segment) calibrate(ctx context.Context) error {
	n := g.len()
	if n == 0 {
		return nil
	}
	t := &Table{bits: g.codes.Bits()}
	s := t.newSearch(nil)
	defer s.release()
	// The queries are codes of the segment with a few bits flipped, as most searches
	// are for something near. They meet the full buckets that other codes are in.
	queries := make([]codec.Code, sampleQueries)
	for i := range queries {
		queries[i] = append(codec.Code(nil), g.codes.At(i*n/sampleQueries)...)
		for f := range g.codes.Bits() / 32 {
			queries[i].Flip((i*31 + f*37) % g.codes.Bits())
		}
	}
	c := &g.costs
	var scans []float64
	for _, q := range queries[:12] {
		s.query, s.collector.found = q, s.collector.found[:0]
		start := time.Now()
		if err := g.scan(ctx, s, g.codes.Bits()/16, nil); err != nil {
			return err
		}
		scans = append(scans, float64(time.Since(start)))
	}
	slices.Sort(scans)
	c.scan = scans[0]
	if g.cells != nil {
		if err := g.measureRecall(ctx, queries); err != nil {
			return err
		}
	}
	if g.bare {
		return nil
	}
	deadline := time.Now().Add(measureFor)
	c.lookups, c.compares, c.found = []float64{0}, []float64{0}, []float64{0}
	for r := 0; r <= g.codes.Bits() && c.between(0, len(c.lookups)-2, 1) < enoughScans*c.scan &&
		time.Now().Before(deadline); r += 1 + r/6 {
		// Each query is asked once, so it meets the caches in the state in which
		// searches of a busy index meet them. The queries are measured in parts, as
		// some of them may be interrupted. The fastest part counts, by time per unit of
		// work.
		s.explain.Candidates, s.explain.Probes, s.explain.Compared = 0, 0, 0
		perLookup, pace, lookups, work := math.Inf(1), math.Inf(1), 0.0, 0.0
		for part := range measuredParts {
			before, beforeWork := float64(s.explain.Probes), g.work(&s.explain)
			var lookedUp, compared time.Duration
			for i := part; i < len(queries); i += measuredParts {
				s.query, s.collector.found = queries[i], s.collector.found[:0]
				start := time.Now()
				s.enter(g)
				for range r + 1 {
					g.lookUp(s)
				}
				middle := time.Now()
				if _, err := g.cover(ctx, s, r, nil, false); err != nil {
					return err
				}
				lookedUp, compared = lookedUp+middle.Sub(start), compared+time.Since(middle)
			}
			lookups, work = float64(s.explain.Probes), g.work(&s.explain)
			perLookup = min(perLookup, float64(lookedUp)/(lookups-before))
			pace = min(pace, float64(compared)/(work-beforeWork+1))
		}
		c.pace = pace
		c.extend(r, perLookup*lookups/sampleQueries, pace*work/sampleQueries,
			float64(s.explain.Candidates)/sampleQueries)
	}
	measured := len(c.lookups)
	// Beyond these radii comparisons are known to take too long for the mean query. A
	// query far from all full buckets may still have few, so the lookups are measured
	// on.
	for r := len(c.lookups) - 1; r <= g.codes.Bits() && c.lookups[len(c.lookups)-1] < c.scan &&
		time.Now().Before(deadline); r += 1 + r/6 {
		best := math.Inf(1)
		for _, q := range queries[:8] {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.query = q
			start := time.Now()
			s.enter(g)
			for range r + 1 {
				g.lookUp(s)
			}
			best = min(best, float64(time.Since(start)))
		}
		c.extend(r, best, math.Inf(1), c.found[len(c.found)-1])
	}
	widths := make([]int, g.groups())
	for p := range widths {
		widths[p] = g.split.starts[g.group(p+1)] - g.split.starts[g.group(p)]
	}
	g.reach = newReach(g.codes.Bits(), widths, measured)
	return g.measureMost(ctx, s, queries, scans[len(scans)/2])
}

// measureMost sets costs.most, for powers of four. It searches as PlanAuto does. A
// search that gives its lookups up takes a scan, and some more. The time of a scan is a
// median, as nothing is left out of that of the lookups either.
func (g *segment) measureMost(ctx context.Context, s *search, queries []codec.Code, scan float64) error {
	const each, furthest = 6, 1 << 10 // every sixth query is asked for each k, and never twice
	const givenUp = 1.25              // time of a search that gives up, in scans
	s.mayScan = true
	for k, from := 4, 0; k <= furthest; k, from = 4*k, from+1 {
		spent, scans := 0.0, 0.0
		for i := from; i < len(queries); i += each {
			s.query = queries[i]
			s.start(g.codes.Bits(), k, nil, func(uint32, int) int { return 1 })
			start := time.Now()
			abandoned, err := s.lookUp(ctx, g)
			if err != nil {
				return err
			}
			took := float64(time.Since(start))
			if abandoned {
				took = givenUp * scan
			}
			spent += min(took, givenUp*scan) // more means that somebody interrupted it
			scans += scan
		}
		g.costs.nearest = append(g.costs.nearest, spent/float64(len(queries)/each))
		if spent > 1.1*scans { // memory is as cold as it never is for a busy index
			return nil
		}
		g.costs.most = k + k/2
	}
	g.costs.most = math.MaxInt // nobody knows
	return nil
}

// extend adds the sums for radius r, and interpolates those of the radii between r and
// the last one measured.
func (c *costs) extend(r int, lookups, compares, found float64) {
	last := len(c.lookups) - 1
	from := [...]float64{c.lookups[last], c.compares[last], c.found[last]}
	for i := last + 1; i <= r+1; i++ {
		share, between := float64(i-last)/float64(r+1-last), math.Inf(1)
		if !math.IsInf(compares, 1) {
			between = from[1] + share*max(compares-from[1], 0)
		}
		c.lookups = append(c.lookups, from[0]+share*max(lookups-from[0], 0))
		c.compares = append(c.compares, between)
		c.found = append(c.found, from[2]+share*max(found-from[2], 0))
	}
}

// work returns a rough estimate of the time of the comparisons in e, in nanoseconds.
func (g *segment) work(e *Explain) float64 {
	if !g.paired() {
		return besideCost * float64(e.Compared)
	}
	return entryCost*float64(e.Candidates) + compareCost*float64(e.Compared)
}

// all returns the time of a search that finds all of the k nearest codes.
func (c *costs) all(k int) float64 {
	for i, at := 0, 4; i < len(c.nearest); i, at = i+1, 4*at {
		if k <= at {
			return min(c.nearest[i], c.scan)
		}
	}
	return c.scan
}

// between returns the predicted time of the radii from to to, for a query whose buckets
// are share times as full as the mean. It returns +Inf if these radii were not
// measured.
func (c *costs) between(from, to int, share float64) float64 {
	if to < from {
		return 0
	}
	if to+1 >= len(c.lookups) || math.IsInf(c.compares[to+1], 1) {
		return math.Inf(1)
	}
	return c.lookups[to+1] - c.lookups[from] + share*(c.compares[to+1]-c.compares[from])
}

// share returns how full the buckets of a query are, as a multiple of the mean, given
// the number of candidates that the radii before r have found.
func (c *costs) share(r, candidates int) float64 {
	return (float64(candidates) + 1) / (c.found[min(r, len(c.found)-1)] + 1)
}

// worthGoingOn reports whether the radii from r to end may take less time than a scan,
// for a query whose radii before r have found so many candidates. It says yes where the
// lookups alone are cheap, as they tell how many codes have to be compared.
func (c *costs) worthGoingOn(r, end, candidates int) bool {
	return c.cheap(r, end) || c.between(r, end, c.share(r, candidates)) < c.scan
}

// cheap reports whether the lookups of the radii from r to end take little time.
func (c *costs) cheap(r, end int) bool {
	return end+1 < len(c.lookups) && c.lookups[end+1]-c.lookups[min(r, end+1)] < cheap*c.scan
}

// worthGoingOnNearest reports whether the radii from r to end of a k-NN search may take
// less time than a scan. The radii before have found so many candidates, and have taken
// spent nanoseconds. The end is an estimate, which is poor as long as few codes have
// been found. So a search goes on as long as it has taken little time: the next radii
// take about twice as long as all before.
func (c *costs) worthGoingOnNearest(r, end, candidates int, spent float64) bool {
	return 3*spent < early*c.scan || c.between(r, end, c.share(r, candidates)) < afterLookups*c.scan
}

// Predict returns the predicted time of each plan that can answer a query, in
// nanoseconds. A negative radius means a k-NN search. Only the first lookups of a k-NN
// search can be predicted.
func (t *Table) Predict(q *Query, radius int) map[Plan]float64 {
	memory, scan, filter := t.predict(q, radius)
	out := map[Plan]float64{PlanScan: scan}
	if !math.IsInf(memory, 1) {
		out[PlanMemory] = memory
	}
	if q.Filter != nil {
		out[PlanFilter] = filter
	}
	return out
}

// predict returns the predicted time of each plan, +Inf for a plan that is not
// possible.
func (t *Table) predict(q *Query, radius int) (memory, scan, filter float64) {
	memory, scan, filter = overhead, overhead, math.Inf(1)
	for _, g := range t.segments {
		r := radius
		if r < 0 {
			r = g.split.Len() - 1
		}
		memory += min(g.costs.between(0, r, 1), g.costs.scan)
		scan += g.costs.scan
	}
	if q.Filter != nil {
		filter = filterCost(q)
	}
	return memory, scan, filter
}

// plan returns the plan to begin with, and its predicted time. Lookups are worth a try
// even where a scan is a little faster for the mean query: queries differ, and the
// first lookups show how.
func (t *Table) plan(q *Query, radius int) (Plan, float64) {
	memory, scan, filter := t.predict(q, radius)
	switch {
	case filter < scan && (filter < memory || radius < 0):
		// The lookups of a k-NN search are cheap to begin with, but may find
		// little that the filter admits.
		return PlanFilter, filter
	case memory < scan || radius >= 0 && t.tries(radius):
		return PlanMemory, min(memory, scan)
	}
	return PlanScan, scan
}

// tries reports whether some segment is worth a try by lookups.
func (t *Table) tries(radius int) bool {
	for _, g := range t.segments {
		if g.costs.tries(radius) {
			return true
		}
	}
	return false
}

// tries reports whether lookups up to radius r are worth a try.
func (c *costs) tries(r int) bool { return c.cheap(0, r) || c.between(0, r, 1) < c.scan }

// Indexed reports whether all segments have their tables in memory, if they can have any.
func (t *Table) Indexed() bool {
	_, bare, _ := t.Covered()
	return bare == 0
}

// PredictRadius returns the predicted time of the plan that Radius would choose, in
// nanoseconds.
func (t *Table) PredictRadius(q *Query, r int) float64 {
	_, predicted := t.plan(q, min(r, t.bits))
	return predicted
}

// filterCost returns the predicted time of PlanFilter: two cache misses a row.
func filterCost(q *Query) float64 { return overhead + 25*float64(q.Filter.GetCardinality()) }
