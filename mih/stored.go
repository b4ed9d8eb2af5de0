package mih

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/codec"
)

// A Store holds the substring tables of a set of codes outside memory, such as on disk.
// Code numbers are those of a [Table]. Searches call a Store from one goroutine at a
// time.
type Store interface {
	// Posting appends to dst the numbers, ascending, of the codes before number
	// [Stored.Posted] that have this value in substring j of [Stored.Split].
	Posting(dst []uint32, j int, value uint32) ([]uint32, error)

	// Near appends to dst the codes with the given numbers that are within r bits of
	// the query, in any order. numbers ascend and are distinct.
	Near(ctx context.Context, dst []codec.Near, query codec.Code, numbers []uint32, r int) ([]codec.Near,
		error)

	// Blocks calls f with all codes from number first on and their numbers, in blocks of
	// at most 4096. codes has the packed codes one after the other, code i with
	// numbers[i]. An error of f ends Blocks, which returns it.
	Blocks(first uint32, f func(numbers []uint32, codes []uint64) error) error

	// Weight returns the number of results that a code stands for; 0 leaves it out.
	Weight(number uint32, distance int) (int, error)
}

// Stored searches a Store as a Table searches its segments. A lookup takes microseconds
// instead of nanoseconds.
type Stored struct {
	Split Split // of the postings
	Codes int   // number of codes
	Bits  int   // of a code
	Store Store
	Costs *StoredCosts // learned and used by searches; several Stored may share it

	// Codes from number Posted on are in no posting. There are at most Tail. Searches by
	// postings also compare each of these.
	Posted uint32
	Tail   int
}

// StoredCosts are running means of the time of lookups and scans of a store, in
// nanoseconds. The zero value starts with a guess. It is safe for concurrent use.
type StoredCosts struct{ lookup, code atomic.Uint64 }

const (
	guessedLookup = 5000 // a posting
	guessedCode   = 10   // a code of a block that is scanned
)

// leastLearned is the number of codes from which on a scan tells the time of one.
const leastLearned = 4096

// Lookup returns the mean time of one posting in nanoseconds.
func (c *StoredCosts) Lookup() float64 { return mean(&c.lookup, guessedLookup) }

// Code returns the mean time of one code of a scan in nanoseconds.
func (c *StoredCosts) Code() float64 { return mean(&c.code, guessedCode) }

// mean returns the mean in a, or guess as long as there is none.
func mean(a *atomic.Uint64, guess float64) float64 {
	if b := a.Load(); b != 0 {
		return math.Float64frombits(b)
	}
	return guess
}

// learn moves the mean in a towards took/n. Of two concurrent calls one may be lost.
func learn(a *atomic.Uint64, guess, took float64, n int) {
	if n > 0 {
		x := mean(a, guess)
		a.Store(math.Float64bits(x + (took/float64(n)-x)/8))
	}
}

// lookups returns the number of lookups in steps from to to.
func (d *Stored) lookups(from, to int) float64 {
	if d.Split.Len() == 0 { // there are no postings
		return math.Inf(1)
	}
	n := 0.0
	for r := from; r <= to; r++ {
		n += d.Split.lookups(r)
	}
	return n
}

// PredictRadius returns the predicted time of a search for radius r in nanoseconds: by
// postings, and by reading all codes.
func (d *Stored) PredictRadius(r int) (postings, scan float64) {
	return d.lookups(0, min(r, d.Bits))*d.Costs.Lookup() + float64(d.Tail)*d.Costs.Code(),
		float64(d.Codes) * d.Costs.Code()
}

// Radius is [Table.Radius] over the store. plan is PlanDisk, PlanBlockScan or PlanAuto.
func (d *Stored) Radius(ctx context.Context, q codec.Code, r int, plan Plan, dst []codec.Near,
	explain *Explain) (found []codec.Near, total int, err error) {
	r = min(r, d.Bits)
	e := Explain{Plan: plan, Substrings: []int{d.Split.Len()}}
	postings, scan := d.PredictRadius(r)
	if d.Split.Len() == 0 {
		plan, e.Plan = PlanBlockScan, PlanBlockScan
	}
	if plan == PlanAuto {
		e.Plan = PlanDisk
		if scan < postings {
			e.Plan = PlanBlockScan
		}
	}
	start := len(dst)
	e.Predicted = time.Duration(scan)
	if e.Plan == PlanDisk {
		e.Predicted = time.Duration(postings)
	}
	err = d.scan(ctx, &e, q, d.unposted(e.Plan), &r, func(near []codec.Near) error {
		dst = append(dst, near...)
		return nil
	})
	if e.Plan == PlanDisk {
		var numbers []uint32
		for step := 0; step <= r && err == nil && e.Scanned < d.Codes; step++ {
			numbers, err = d.step(ctx, &e, q, step, numbers)
		}
		if err == nil {
			slices.Sort(numbers)
			numbers = slices.Compact(numbers)
			e.Compared = len(numbers)
			dst, err = d.Store.Near(ctx, dst, q, numbers, r)
		}
	}
	if err != nil {
		return dst[:start], 0, err
	}
	weight := d.weight(&err)
	found = slices.DeleteFunc(dst[start:], func(x codec.Near) bool {
		w := weight(x.Position(), x.Distance())
		total += max(w, 0)
		return w <= 0
	})
	if err != nil {
		return dst[:start], 0, err
	}
	dst = appendByDistance(dst[:start], slices.Clone(found), d.Bits)
	e.Found = len(found)
	if explain != nil {
		*explain = e
	}
	return dst, total, nil
}

// step appends the numbers that the lookups of step r find.
func (d *Stored) step(ctx context.Context, e *Explain, q codec.Code, r int,
	numbers []uint32) ([]uint32, error) {
	j, a := d.Split.step(r)
	width, value := d.Split.Width(j), d.Split.Of(q, j)
	began, before, probes := time.Now(), len(numbers), 0
	var err error
	for mask := firstMask(a); mask>>width == 0; mask = nextMask(mask) {
		if probes%64 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if numbers, err = d.Store.Posting(numbers, j, value^uint32(mask)); err != nil {
			return nil, err
		}
		probes++
	}
	learn(&d.Costs.lookup, guessedLookup, float64(time.Since(began)), probes)
	e.Probes += probes
	e.Candidates += len(numbers) - before
	return numbers, nil
}

// unposted returns the number of the first code that a plan has to scan: the first of all, or the
// first one that lookups cannot find.
func (d *Stored) unposted(p Plan) uint32 {
	if p == PlanDisk {
		return d.Posted
	}
	return 0
}

// scan reads all codes from number first on and calls f with those within *bound bits,
// block by block. f may lower *bound.
func (d *Stored) scan(ctx context.Context, e *Explain, q codec.Code, first uint32, bound *int,
	f func([]codec.Near) error) error {
	if first > 0 && d.Tail == 0 {
		return nil
	}
	began, scanned := time.Now(), 0
	near := make([]codec.Near, scanBlock+8)
	err := d.Store.Blocks(first, func(numbers []uint32, codes []uint64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		scanned += len(numbers)
		found := near[:codec.Within(near, q, codes, *bound, 0)]
		for i, x := range found {
			found[i] = codec.NearOf(x.Distance(), numbers[x.Position()])
		}
		if len(found) == 0 {
			return nil
		}
		return f(found)
	})
	if scanned >= leastLearned { // a scan of a few costs little more than its beginning
		learn(&d.Costs.code, guessedCode, float64(time.Since(began)), scanned)
	}
	e.Scanned += scanned
	return err
}

// Nearest is [Table.Nearest] over the store. plan is PlanDisk, PlanBlockScan or
// PlanAuto.
func (d *Stored) Nearest(ctx context.Context, q codec.Code, k int, plan Plan, dst []codec.Near,
	explain *Explain) ([]codec.Near, error) {
	if k <= 0 {
		return dst, nil
	}
	var failed error
	c := new(collector)
	c.start(d.Bits, k, nil, d.weight(&failed))
	e := Explain{Plan: plan, Substrings: []int{d.Split.Len()}}
	m, scanCost := d.Split.Len(), float64(d.Codes)*d.Costs.Code()
	if m == 0 {
		plan, e.Plan = PlanBlockScan, PlanBlockScan
	}
	if plan == PlanAuto {
		e.Plan = PlanDisk
		if d.lookups(0, m)*d.Costs.Lookup()+float64(d.Tail)*d.Costs.Code() > scanCost {
			e.Plan = PlanBlockScan
		}
	}
	scan := func(first uint32) error {
		return d.scan(ctx, &e, q, first, &c.bound, func(near []codec.Near) error {
			c.found = append(c.found, near...)
			c.take()
			return failed
		})
	}
	if err := scan(d.unposted(e.Plan)); err != nil {
		return dst, err
	}
	inTail := e.Scanned
	var seen, numbers, fresh []uint32
	for r := 0; e.Plan == PlanDisk && r <= d.Bits && !(r > 0 && c.done(r-1)) &&
		inTail+len(seen) < d.Codes; r++ {
		if plan == PlanAuto && r >= m && d.lookups(r, c.bound)*d.Costs.Lookup() > scanCost {
			e.Abandoned = true
			c.forget(0, math.MaxUint32)
			if err := scan(0); err != nil {
				return dst, err
			}
			break
		}
		var err error
		if numbers, err = d.step(ctx, &e, q, r, numbers[:0]); err != nil {
			return dst, err
		}
		slices.Sort(numbers)
		fresh, seen = without(fresh[:0], slices.Compact(numbers), seen)
		e.Compared += len(fresh)
		if c.found, err = d.Store.Near(ctx, c.found, q, fresh, c.bound); err != nil {
			return dst, err
		}
		if c.take(); failed != nil {
			return dst, failed
		}
	}
	start := len(dst)
	dst = c.appendTo(dst)
	e.Found = len(dst) - start
	if explain != nil {
		*explain = e
	}
	return dst, nil
}

// weight returns Store.Weight as a function that writes an error to *failed. After an
// error every weight is 0.
func (d *Stored) weight(failed *error) func(uint32, int) int {
	return func(n uint32, distance int) int {
		if *failed != nil {
			return 0
		}
		w, err := d.Store.Weight(n, distance)
		*failed = err
		return w
	}
}

// without appends to dst the numbers that are not in seen. It returns dst, and seen
// with these numbers. All slices ascend and are distinct.
func without(dst, numbers, seen []uint32) (fresh, all []uint32) {
	all = make([]uint32, 0, len(seen)+len(numbers))
	for _, n := range numbers {
		for len(seen) > 0 && seen[0] < n {
			all, seen = append(all, seen[0]), seen[1:]
		}
		if len(seen) == 0 || seen[0] != n {
			dst, all = append(dst, n), append(all, n)
		}
	}
	return dst, append(all, seen...)
}

// step returns the substring and the distance at which step r looks.
func (s Split) step(r int) (j, distance int) { return r % s.Len(), r / s.Len() }

// lookups returns the number of lookups of step r.
func (s Split) lookups(r int) float64 {
	j, a := s.step(r)
	return choose(s.Width(j), a)
}
