package matrix

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
)

const (
	auto     = "auto"
	fullscan = "fullscan"
)

// tierNames are the ways to search: the plans of a database, and the yardstick.
var tierNames = []string{auto, fullscan, "scan", "memory", "disk", "blockscan"}

// tierPlans are the plans of the tiers that are plans.
var tierPlans = map[string]db.Plan{
	auto: db.PlanAuto, "scan": db.PlanScan, "memory": db.PlanMemory, "disk": db.PlanDisk,
	"blockscan": db.PlanBlockScan,
}

// A tier searches in one way.
type tier interface {
	Search(ctx context.Context, q db.Query) (*db.Result, error) // the first q.K items
	Radius(ctx context.Context, q db.Query, r int) (runs, error)
}

// runs are the items within a radius, nearest first.
type runs interface {
	Total() int
	Hits(ctx context.Context) iter.Seq2[db.Hit, error] // all of them, ignoring Query.K
	Close() error
}

// A planned tier searches a collection by one plan.
type planned struct {
	c    *db.Collection
	plan db.Plan
}

func (t planned) Search(ctx context.Context, q db.Query) (*db.Result, error) {
	q.Plan = t.plan
	return t.c.Search(ctx, q)
}

func (t planned) Radius(ctx context.Context, q db.Query, r int) (runs, error) {
	q.Plan = t.plan
	return t.c.SearchRadius(ctx, q, r)
}

// firstHits is the number of hits that the operation hits reads.
const firstHits = 100

// A timed search is an operation by a tier, with the times that it took.
type timed struct {
	op    string // knn, radius or hits
	n     int    // k or the radius
	name  string // of the tier
	tier  tier
	times []time.Duration // by query
	hits  int             // of all queries
}

// run searches once and returns the number of hits.
func (s *timed) run(ctx context.Context, code []byte) (int, error) {
	q := db.Query{Code: code}
	switch s.op {
	case "knn":
		q.K = s.n
		r, err := s.tier.Search(ctx, q)
		if err != nil {
			return 0, err
		}
		return len(r.Hits), nil
	}
	runs, err := s.tier.Radius(ctx, q, s.n)
	if err != nil {
		return 0, err
	}
	n := runs.Total()
	if s.op == "hits" {
		n = 0
		for _, err := range runs.Hits(ctx) {
			if err != nil {
				return n, errors.Join(err, runs.Close())
			}
			if n++; n == firstHits {
				break
			}
		}
	}
	return n, runs.Close()
}

// String names the search in the table.
func (s *timed) String() string { return fmt.Sprintf("%s %d", s.op, s.n) }

// average returns how many hits a query has.
func (s *timed) average() float64 { return float64(s.hits) / float64(len(s.times)) }

// quantile returns the smallest time that a share p of the times does not exceed, in
// microseconds.
func quantile(times []time.Duration, p float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return us(sorted[int(math.Ceil(p*float64(len(sorted))))-1])
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// search measures every operation by every tier in a database. After each operation it calls done with the
// times of all tiers.
func (m *matrix) search(ctx context.Context, d *db.DB, codes codec.Codes,
	done func(group []*timed)) error {
	var queries [][]byte
	for i := range codes.Len() {
		queries = append(queries, codes.At(i).AppendBytes(nil, codes.Bits()))
	}
	c, err := d.Collection("main")
	if err != nil {
		return err
	}
	tiers := map[string]tier{}
	for _, name := range m.tiers {
		if plan, is := tierPlans[name]; is {
			tiers[name] = planned{c, plan}
			continue
		}
		full := newFullScan(codes.Bits())
		for x, err := range c.Codes(ctx, "") {
			if err != nil {
				return err
			}
			full.add(x.Row, x.Code)
		}
		tiers[name] = full
	}
	if err := d.WaitForIndex(ctx); err != nil {
		return err
	}
	runtime.GC() // making the set has left garbage
	for _, op := range []struct {
		name   string
		params []int
	}{{"radius", m.radius}, {"hits", m.radius}, {"knn", m.k}} {
		for _, n := range op.params {
			var group []*timed
			for _, name := range m.tiers {
				if op.name != "hits" || name != fullscan { // the yardstick has no keys
					group = append(group, &timed{op: op.name, n: n, name: name, tier: tiers[name]})
				}
			}
			if len(group) == 0 {
				continue
			}
			if err := measure(ctx, group, queries); err != nil {
				return err
			}
			for _, s := range group[1:] {
				if s.hits != group[0].hits {
					return fmt.Errorf("%s finds %d by %s and %d by %s", s, s.hits, s.name, group[0].hits,
						group[0].name)
				}
			}
			done(group)
		}
	}
	return nil
}

// A turn of a tier is so many queries. Before it so many others run uncounted, for a
// limited time, to bring the data of the tier back into the caches: the tier before it
// may have read all codes.
const (
	turnLength = 1000
	warmUp     = 200 * time.Millisecond
)

// measure times an operation by several tiers, which take turns, so that what else the machine does meets all
// of them.
func measure(ctx context.Context, group []*timed, queries [][]byte) error {
	n := len(queries)
	for from := 0; from < n; from += turnLength {
		for _, s := range group {
			began := time.Now()
			for i := 0; i < min(turnLength, n) && time.Since(began) < warmUp; i++ {
				if _, err := s.run(ctx, queries[((from-i-1)%n+n)%n]); err != nil {
					return fmt.Errorf("%s %d by %s: %w", s.op, s.n, s.name, err)
				}
			}
			for _, q := range queries[from:min(from+turnLength, n)] {
				start := time.Now()
				hits, err := s.run(ctx, q)
				s.times = append(s.times, time.Since(start))
				if err != nil {
					return fmt.Errorf("%s %d by %s: %w", s.op, s.n, s.name, err)
				}
				s.hits += hits
			}
		}
	}
	return nil
}
