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
	Number   uint32  // of the code
	Distance int     // Hamming distance from the signs of the query
	Score    float64 // z . h; see [Scorer]
}

// Compare orders by descending score, then by ascending number.
func (a Scored) Compare(b Scored) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Number, b.Number))
}

// A ranking is the state and the scratch memory of one search for the best scores. It
// belongs to the goroutine of that search; rankings keeps used ones.
//
// It works with lacks instead of scores (see [Scorer]): the smaller the lack of a code,
// the better its score. Let W be the smallest lack such that the codes that lack W or
// less have weights that add up to k. These codes are the answer. The bound is W
// computed over the codes found so far. It is never below W and only falls, so a code
// that lacks more than the bound need not be looked at.
//
// A code at distance d differs from the signs of the query in d bits, and lacks |z_b|
// for each of them. So it lacks at least the sum of the d smallest |z_b|. Let r be the
// largest number such that the r smallest |z_b| add up to no more than the bound. No
// code farther than r bits is in the answer, and the Hamming kernels sort out most
// codes before a score is computed.
type ranking struct {
	by     *Scorer                               // of the query
	weigh  func(number uint32, distance int) int // results that a code stands for; see [Query]
	k      int                                   // results asked for
	bound  int64                                 // W over the codes found so far
	least  []int64                               // least[r]: sum of the r smallest weights
	coarse coarseLacks                           // bounds lacks from below; not filled in if few
	few    bool                                  // too few codes to be worth the tables of coarse
	found  []lacking                             // codes with a weight; not all of them are within the bound
	room   int                                   // length of found at which it is pruned
	nears  []codec.Near                          // scratch memory of the Hamming kernels
	// bitmap of the slots of the current segment that were offered
	seen   []uint64
	lookup lookups // state of the lookups in the current segment
}

// lacking is a code that has been found.
type lacking struct {
	lack     int64 // see [Scorer]
	number   uint32
	distance int32
	weight   int // results that the code stands for
}

var rankings = sync.Pool{New: func() any { return new(ranking) }}

// newRanking starts a search for the best k results in a table of so many codes.
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

// release gives the ranking back to the pool, unless one large answer has made it
// large.
func (r *ranking) release() {
	r.by, r.weigh, r.lookup.table = nil, nil, nil
	const keep = 1 << 20 // as for a search
	if cap(r.found) <= keep/4 && cap(r.lookup.slots) <= keep {
		rankings.Put(r)
	}
}

// radius returns the distance beyond which no code can be in the answer.
func (r *ranking) radius() int {
	return sort.Search(len(r.least), func(d int) bool { return r.least[d] > r.bound }) - 1
}

// refuses reports whether the coarse bound alone shows that a code lacks more than the
// bound.
func (r *ranking) refuses(code codec.Code) bool {
	return !r.few && r.coarse.above(r.by, code, r.bound)
}

// offer adds a code to found, unless it lacks more than the bound or has no weight. A
// code must not be offered again once it was added.
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

// prune sorts found, lowers the bound and drops the codes beyond it. It runs again only
// when found has grown by a quarter, so all sorts together take as long as a few sorts
// of the largest.
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
			r.bound = x.lack // and go on: codes with the same lack belong to the answer
		}
	}
	r.room = len(r.found) + len(r.found)/4 + firstPiece
}

// appendTo appends the answer to dst, best score first.
func (r *ranking) appendTo(dst []Scored, explain *Explain) []Scored {
	r.prune()
	explain.Found = len(r.found)
	dst = slices.Grow(dst, len(r.found))
	for _, x := range r.found {
		dst = append(dst, Scored{x.number, int(x.distance), r.by.score(x.lack)})
	}
	return dst
}

// compare offers the codes that are near enough. codes are at most scanBlock packed
// codes. number returns the number of code i, and whether it has not been offered
// before.
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

// scan compares all codes, block by block. Before there is a bound every code is near
// enough, so the first blocks are small.
func (r *ranking) scan(ctx context.Context, codes codec.Codes,
	number func(i uint32) (n uint32, isNew bool)) error {
	n, size := codes.Len(), scanBlock/64
	for from, block := 0, 0; from < n; from, block = from+size, block+1 {
		if size = min(2*size, scanBlock); r.bound < math.MaxInt64 {
			size = scanBlock
		}
		if block%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.compare(codes.Slice(from, min(from+size, n)),
			func(i uint32) (uint32, bool) { return number(uint32(from) + i) })
	}
	return nil
}

// Best appends to dst the codes with a score of S or more. S is the largest score for
// which the weights of these codes add up to k. If the weights of all codes add up to
// less, it appends every code that has a weight. So the codes that share the last score
// come complete. They are in the order of [Scored.Compare]. Best searches for the code
// of by and ignores the code of q.
//
// Best has three ways. It reads all codes, with the Hamming kernels first. It reads the
// codes of the rows of q.Filter, if these are few. Or it looks substrings up by their
// lacks (see lookups), and falls back to reading all codes when that takes longer.
func (t *Table) Best(ctx context.Context, q *Query, by *Scorer, k int, dst []Scored,
	explain *Explain) ([]Scored, error) {
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

// cardinality is Cardinality with the parameters of [Query.Weight].
func (t *Table) cardinality(n uint32, _ int) int { return t.Cardinality(n) }

// searchTable offers the codes that may be in the answer, by the plan in s.explain.
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
		err = r.scan(ctx, g.codes, func(slot uint32) (uint32, bool) {
			return g.numbers[slot],
				!r.offered(slot)
		})
		s.explain.Scanned += g.len()
	}
	return err
}

// planBest returns the plan to begin with. It tries lookups whenever a segment has
// tables and is large enough: they begin with microseconds, and stop when they take too
// long.
func (t *Table) planBest(q *Query, k int) (Plan, float64) {
	predicted := t.PredictBest(q)
	scan := predicted[PlanScan]
	switch filter, ok := predicted[PlanFilter]; {
	case ok && filter < scan:
		return PlanFilter, filter
	case k < t.items && slices.ContainsFunc(t.segments,
		func(g *segment) bool { return !g.bare && g.len() >= worthLookups }):
		return PlanMemory, scan
	}
	return PlanScan, scan
}

// wordCost is the time of a scan by score, in nanoseconds per word of a code. It is
// twice that where the magnitudes of the query tell little about the codes, and half
// where they tell much.
const wordCost = 2

// PredictBest returns the predicted time of Best in nanoseconds, by plan, for the plans
// that read codes one after the other. The time of lookups depends on the query and is
// not predicted: Best gives them up once they take longer than a scan.
func (t *Table) PredictBest(q *Query) map[Plan]float64 {
	out := map[Plan]float64{PlanScan: overhead + wordCost*float64(t.indexed()*codec.Words(t.bits))}
	if q.Filter != nil {
		out[PlanFilter] = filterCost(q)
	}
	return out
}

// Best is [Table.Best] over stored codes. It reads all of them.
func (d *Stored) Best(ctx context.Context, by *Scorer, k int, dst []Scored,
	explain *Explain) ([]Scored, error) {
	if k <= 0 {
		return dst, nil
	}
	var failed error
	r := newRanking(by, k, d.Codes, d.weight(&failed))
	defer r.release()
	e := Explain{Plan: PlanBlockScan, Substrings: []int{d.Split.Len()},
		Predicted: time.Duration(float64(d.Codes) * d.Costs.Code())}
	began := time.Now()
	err := d.Store.Blocks(0, func(numbers []uint32, codes []uint64) error {
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
	if e.Scanned >= leastLearned {
		learn(&d.Costs.code, guessedCode, float64(time.Since(began)), e.Scanned)
	}
	dst = r.appendTo(dst, &e)
	if explain != nil {
		*explain = e
	}
	return dst, nil
}
