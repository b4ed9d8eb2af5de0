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

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
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
	finds []time.Duration // of knn, by query: finding the codes alone
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

// find searches again and notes how long it takes to find the codes, which is all that the yardstick does. A
// search that tells so reads the clock more often.
func (s *timed) find(ctx context.Context, queries [][]byte) error {
	t, is := s.tier.(planned)
	switch {
	case s.op != "knn":
		return nil
	case !is:
		s.finds = s.times
		return nil
	}
	for _, code := range queries {
		r, err := t.c.Search(ctx, db.Query{Code: code, K: s.n, Plan: t.plan, Include: db.IncludeExplain})
		if err != nil {
			return err
		}
		s.finds = append(s.finds, time.Duration(r.Explain.SearchUS*1000))
	}
	return nil
}

// result returns the figures.
func (s *timed) result() *result {
	r := &result{Op: s.op, Tier: s.name, Queries: len(s.times),
		AvgHits: float64(s.hits) / float64(len(s.times))}
	if n := s.n; s.op == "knn" {
		r.K = &n
	} else {
		r.Radius = &n
	}
	sum := time.Duration(0)
	for _, t := range s.times {
		sum += t
	}
	r.Mean = math.Round(us(sum)/float64(len(s.times))*1000) / 1000
	r.P50, r.P99 = quantile(s.times, .5), quantile(s.times, .99)
	if s.finds != nil {
		r.Find = quantile(s.finds, .5)
	}
	return r
}

// quantile returns the smallest time that a share p of the times does not exceed, in
// microseconds.
func quantile(times []time.Duration, p float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return us(sorted[int(math.Ceil(p*float64(len(sorted))))-1])
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// search measures all operations by all tiers, with the codes of a file, in a database.
func (m *matrix) search(ctx context.Context, c *cell, file, dir string) (_ results, err error) {
	codes, err := npy.ReadCodes(file)
	if err != nil {
		return nil, err
	}
	var queries [][]byte
	for i := range codes.Len() {
		queries = append(queries, codes.At(i).AppendBytes(nil, codes.Bits()))
	}
	d, err := db.Open(dir, &db.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	main, err := d.Collection("main")
	if err != nil {
		return nil, err
	}
	tiers := map[string]tier{}
	for _, name := range m.tiers {
		if plan, is := tierPlans[name]; is {
			tiers[name] = planned{main, plan}
			continue
		}
		full := newFullScan(c.bits)
		for x, err := range main.Codes(ctx, "") {
			if err != nil {
				return nil, err
			}
			full.add(x.Row, x.Code)
		}
		tiers[name] = full
	}
	if err := d.WaitForIndex(ctx); err != nil {
		return nil, err
	}
	runtime.GC() // making the set has left garbage
	var list results
	for _, kind := range []struct {
		op     string
		params []int
	}{{"knn", m.k}, {"radius", m.radius}, {"hits", m.radius}} {
		for _, n := range kind.params {
			var group []*timed
			for _, name := range m.tiers {
				if kind.op != "hits" || name != fullscan { // the yardstick has no keys
					group = append(group, &timed{op: kind.op, n: n, name: name, tier: tiers[name]})
				}
			}
			if err := measure(ctx, group, queries); err != nil {
				return nil, err
			}
			for _, s := range group {
				list = append(list, s.result())
			}
		}
	}
	return list, nil
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
			if err := s.find(ctx, queries[from:min(from+turnLength, n)]); err != nil {
				return err
			}
		}
	}
	return nil
}
