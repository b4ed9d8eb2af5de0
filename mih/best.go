package mih

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// A Scored is a code that a search by score has found.
type Scored struct {
	Number   uint32
	Distance int // of the code from the signs of the query
	Score    float64
}

// Compare orders by (-score, number).
func (a Scored) Compare(b Scored) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Number, b.Number))
}

// A ranking is the scratch memory and the state of a search for the best scores.
//
// It works with what codes lack (see Scorer): the answer is the codes that lack at
// most W, the smallest number for which the weights of these codes add up to k. Its
// bound is that number for the codes found so far, so it is never less than W and
// only falls, and what lacks more need not be looked at.
//
// A code at distance d lacks no less than the d smallest |z_b| together, as it
// differs in d bits, each of which adds its |z_b|. So a code farther than the
// largest r for which the r smallest add up to no more than the bound is not in the
// answer: the Hamming kernels sort out most codes before a score is computed.
type ranking struct {
	by     *Scorer
	weigh  func(number uint32, distance int) int
	k      int
	bound  int64
	least  []int64 // least[r]: sum of the r smallest weights
	coarse coarseLacks
	few    bool // too few codes for its tables
	found  []lacking
	room   int // length of found at which it is pruned
	nears  []codec.Near
	seen   []uint64 // bitmap of the slots of the segment in hand that were offered
	lookup lookups
}

// lacking is a code that has been found.
type lacking struct {
	lack     int64
	number   uint32
	distance int32
	weight   int
}

var rankings = sync.Pool{New: func() any { return new(ranking) }}

// newRanking starts a search for the best k among so many codes.
func newRanking(by *Scorer, k, codes int, weigh func(uint32, int) int) *ranking {
	r := rankings.Get().(*ranking)
	r.by, r.k, r.weigh = by, k, weigh
	r.bound, r.found = math.MaxInt64, r.found[:0]
	r.least = append(append(r.least[:0], 0), by.weights...)
	slices.Sort(r.least[1:])
	for i := range by.weights {
		r.least[i+1] += r.least[i]
	}
	if r.few = codes < 256; !r.few {
		r.coarse.fill(by)
	}
	if r.nears == nil {
		r.nears = make([]codec.Near, scanBlock+8)
	}
	r.room = firstPiece
	return r
}

func (r *ranking) release() {
	r.by, r.weigh, r.lookup.table = nil, nil, nil
	const keep = 1 << 20 // as a search does
	if cap(r.found) <= keep/4 && cap(r.lookup.slots) <= keep {
		rankings.Put(r)
	}
}

// radius returns the distance beyond which no code can be in the answer.
func (r *ranking) radius() int {
	return sort.Search(len(r.least), func(d int) bool { return r.least[d] > r.bound }) - 1
}

// refuses reports whether a code is seen at a glance to lack more than the bound.
func (r *ranking) refuses(code codec.Code) bool {
	return !r.few && r.coarse.above(r.by, code, r.bound)
}

// offer adds a code to what has been found, unless it lacks more than the bound or
// has no weight. Each code may be offered once, or again after it was refused.
func (r *ranking) offer(n uint32, distance int, code codec.Code) {
	lack := r.by.lack(code)
	if lack > r.bound {
		return
	}
	w := r.weigh(n, distance)
	if w <= 0 {
		return
	}
	r.found = append(r.found, lacking{lack, n, int32(distance), w})
	if len(r.found) >= r.room {
		r.prune()
	}
}

// prune sorts what has been found, lowers the bound and drops what lies beyond.
// What is left may grow by a quarter before the next time, so that all of these
// take no longer than a few sorts of the largest.
func (r *ranking) prune() {
	slices.SortFunc(r.found, func(a, b lacking) int {
		return cmp.Or(cmp.Compare(a.lack, b.lack), cmp.Compare(a.number, b.number))
	})
	sum := 0
	for i, x := range r.found {
		if x.lack > r.bound {
			r.found = r.found[:i]
			break
		}
		if sum += x.weight; sum >= r.k {
			r.bound = x.lack // and go on to those that lack as much
		}
	}
	r.room = len(r.found) + len(r.found)/4 + firstPiece
}

// appendTo appends the answer in order.
func (r *ranking) appendTo(dst []Scored, explain *Explain) []Scored {
	r.prune()
	explain.Found = len(r.found)
	dst = slices.Grow(dst, len(r.found))
	for _, x := range r.found {
		dst = append(dst, Scored{x.number, int(x.distance), r.by.score(x.lack)})
	}
	return dst
}

// compare offers those of at most scanBlock packed codes that are near enough.
// number says what the number of each is, and whether it is new.
func (r *ranking) compare(codes []uint64, number func(i uint32) (n uint32, isNew bool)) {
	words := len(r.by.code)
	found := codec.Within(r.nears, r.by.code, codes, r.radius(), 0)
	for _, x := range r.nears[:found] {
		i := x.Position()
		code := codes[int(i)*words:][:words]
		if r.refuses(code) {
			continue
		}
		if n, isNew := number(i); isNew {
			r.offer(n, x.Distance(), code)
		}
	}
}

// scan compares codes, block by block: the first ones small, as all codes are near
// enough before there is a bound.
func (r *ranking) scan(ctx context.Context, codes codec.Codes, number func(i uint32) (n uint32, isNew bool)) error {
	n, size := codes.Len(), scanBlock/64
	for from, block := 0, 0; from < n; from, block = from+size, block+1 {
		if size = min(2*size, scanBlock); r.bound < math.MaxInt64 {
			size = scanBlock
		}
		if block%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.compare(codes.Slice(from, min(from+size, n)), func(i uint32) (uint32, bool) { return number(uint32(from) + i) })
	}
	return nil
}

// Best appends to dst the codes with a score of S or more, S being the largest for
// which their weights add up to k; all codes that have a weight where they do not.
// So the codes of the last score come complete. They are in the order of
// [Scored.Compare]. The code of q is that of the scorer, whatever q says.
//
// It reads all codes where they are few, or those of the rows of a selective filter,
// with the Hamming kernels first; with tables of substrings it looks up what lacks
// little (see lookups), and gives up where that takes longer than to read all.
func (t *Table) Best(ctx context.Context, q *Query, by *Scorer, k int, dst []Scored, explain *Explain) ([]Scored, error) {
	if k <= 0 {
		return dst, nil
	}
	s := t.newSearch(by.code)
	defer s.release()
	weigh := t.cardinality
	if q.Filter != nil || q.Weight != nil {
		weigh = func(n uint32, d int) int { return q.weight(t, n, d) }
	}
	r := newRanking(by, k, t.used, weigh)
	defer r.release()
	plan, predicted := q.Plan, 0.0
	if plan == PlanAuto {
		plan, predicted = t.planBest(q, k)
	}
	s.explain.Plan, s.explain.Predicted = plan, time.Duration(predicted)
	if err := r.searchTable(ctx, s, q); err != nil {
		return dst, err
	}
	dst = r.appendTo(dst, &s.explain)
	s.explainTo(explain)
	return dst, nil
}

func (t *Table) cardinality(n uint32, _ int) int { return t.Cardinality(n) }

// searchTable offers what may be in the answer, by the plan that s explains.
func (r *ranking) searchTable(ctx context.Context, s *search, q *Query) error {
	t := s.t
	if s.explain.Plan == PlanFilter {
		if err := s.filter(ctx, q, t.bits); err != nil {
			return err
		}
		for _, x := range s.found {
			r.offer(x.Position(), x.Distance(), t.Code(x.Position()))
		}
		return nil
	}
	s.explain.Tail, s.explain.Scanned = t.tail.Len(), t.tail.Len()
	err := r.scan(ctx, t.tail, func(i uint32) (uint32, bool) { return t.tailFirst + i, true })
	for _, g := range t.segments {
		if err != nil {
			return err
		}
		s.explain.Substrings = append(s.explain.Substrings, g.split.Len())
		if s.explain.Plan == PlanMemory && !g.bare {
			complete := false
			if complete, err = r.lookUp(ctx, s, g, q.Plan == PlanAuto); complete || err != nil {
				continue
			}
			s.explain.Abandoned = true
		} else {
			r.seen = r.seen[:0]
		}
		err = r.scan(ctx, g.codes, func(slot uint32) (uint32, bool) { return g.numbers[slot], !r.offered(slot) })
		s.explain.Scanned += g.len()
	}
	return err
}

// planBest returns the plan to begin with. Lookups take microseconds to begin with,
// and tell when they take too long.
func (t *Table) planBest(q *Query, k int) (Plan, float64) {
	predicted := t.PredictBest(q)
	scan := predicted[PlanScan]
	switch filter, ok := predicted[PlanFilter]; {
	case ok && filter < scan:
		return PlanFilter, filter
	case k < t.items && slices.ContainsFunc(t.segments, func(g *segment) bool { return !g.bare && g.len() >= worthLookups }):
		return PlanMemory, scan
	}
	return PlanScan, scan
}

// A scan takes so many nanoseconds a word of a code: twice as many where the query
// says little of the codes, half as many where it says much.
const wordCost = 2

// PredictBest returns what Best is roughly predicted to take by the plans that read
// codes one after the other, in nanoseconds. What lookups take depends on the query,
// and shows soon; they are given up where it is more than that of a scan.
func (t *Table) PredictBest(q *Query) map[Plan]float64 {
	out := map[Plan]float64{PlanScan: overhead + wordCost*float64(t.indexed()*codec.Words(t.bits))}
	if q.Filter != nil {
		out[PlanFilter] = filterCost(q)
	}
	return out
}

// Best is as that of a Table. It reads all codes.
func (d *Stored) Best(ctx context.Context, by *Scorer, k int, dst []Scored, explain *Explain) ([]Scored, error) {
	if k <= 0 {
		return dst, nil
	}
	var failed error
	r := newRanking(by, k, d.Codes, d.weight(&failed))
	defer r.release()
	e := Explain{Plan: PlanBlockScan, Substrings: []int{d.Split.Len()}, Predicted: time.Duration(float64(d.Codes) * d.Costs.Code())}
	began := time.Now()
	err := d.Store.Blocks(func(numbers []uint32, codes []uint64) error {
		e.Scanned += len(numbers)
		r.compare(codes, func(i uint32) (uint32, bool) { return numbers[i], true })
		if failed != nil {
			return failed
		}
		return ctx.Err()
	})
	if err != nil {
		return dst, err
	}
	learn(&d.Costs.code, guessedCode, float64(time.Since(began)), e.Scanned)
	dst = r.appendTo(dst, &e)
	if explain != nil {
		*explain = e
	}
	return dst, nil
}
