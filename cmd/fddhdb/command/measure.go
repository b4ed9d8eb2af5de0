package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A benchOp is what is measured: an operation and its k or radius.
type benchOp struct {
	op string // knn, radius, hits or count
	n  int
}

func (o benchOp) String() string { return fmt.Sprintf("%s %d", o.op, o.n) }

// firstHits is how many hits the operation hits looks at.
const firstHits = 100

// A benchPlan is what to measure.
type benchPlan struct {
	k, radius []int // 10 nearest items if there are neither
	tiers     []string
	check     bool // compare every answer with a linear scan
}

func (o *benchPlan) ops() []benchOp {
	var ops []benchOp
	for _, k := range o.k {
		ops = append(ops, benchOp{"knn", k})
	}
	for _, r := range o.radius {
		ops = append(ops, benchOp{"radius", r}, benchOp{"hits", r}, benchOp{"count", r})
	}
	if len(ops) == 0 {
		ops = append(ops, benchOp{"knn", 10})
	}
	return ops
}

// A benchLine is one measurement: an operation by a tier.
type benchLine struct {
	benchOp
	tier       string
	searches   benchTier
	times      []time.Duration
	parts      []benchParts // of the same queries
	hits       int          // of all queries
	checked    int
	mismatches int
}

// benchParts are what the time of a search consists of.
type benchParts struct {
	encode time.Duration // from the query to its code
	find   time.Duration // from the code to the codes of the answer, which is all that a tier decides
	order  time.Duration // of their items
	keys   time.Duration // of the hits
}

// run does the operation once and returns the number of hits.
func (l *benchLine) run(ctx context.Context, q *benchQuery) (int, error) {
	ask := l.ask(q)
	switch l.op {
	case "knn":
		hits, err := l.searches.search(ctx, ask)
		return len(hits), err
	case "count":
		return l.searches.count(ctx, ask, l.n)
	}
	runs, err := l.searches.radius(ctx, ask, l.n)
	if err != nil {
		return 0, err
	}
	n := runs.Total()
	if l.op == "hits" {
		n = 0
		for _, err := range firstOf(runs.Hits(ctx), firstHits) {
			if err != nil {
				return n, errors.Join(err, runs.Close())
			}
			n++
		}
	}
	return n, runs.Close()
}

// ask returns the query as the tier takes it.
func (l *benchLine) ask(q *benchQuery) db.Query {
	ask := q.Query
	if l.tier == fullScanTier {
		ask = db.Query{Code: q.code} // it knows no models
	}
	if l.op == "knn" {
		ask.K = l.n
	}
	return ask
}

// json returns the figures; they are zero where nothing was measured.
func (l *benchLine) json(checked bool) benchJSON {
	j := benchJSON{Op: l.op, Tier: l.tier, Queries: len(l.times)}
	n := l.n
	if l.op == "knn" {
		j.K = &n
	} else {
		j.Radius = &n
	}
	if checked {
		c, m := l.checked, l.mismatches
		j.Checked, j.Mismatches = &c, &m
	}
	if len(l.times) == 0 {
		return j
	}
	sum := time.Duration(0)
	for _, t := range l.times {
		sum += t
	}
	j.P50, j.P99 = quantile(l.times, .5), quantile(l.times, .99)
	j.Mean = math.Round(us(sum)/float64(len(l.times))*1000) / 1000
	j.AvgHits = float64(l.hits) / float64(len(l.times))
	j.Encode = quantile(l.each(func(p benchParts) time.Duration { return p.encode }), .5)
	j.Find = quantile(l.finding(), .5)
	j.Order = quantile(l.each(func(p benchParts) time.Duration { return p.order }), .5)
	j.Keys = quantile(l.each(func(p benchParts) time.Duration { return p.keys }), .5)
	return j
}

// finding returns how long it took to find the codes, query by query: of the searches of all
// tiers the part that can be compared.
func (l *benchLine) finding() []time.Duration {
	return l.each(func(p benchParts) time.Duration { return p.find })
}

func (l *benchLine) each(part func(benchParts) time.Duration) []time.Duration {
	out := make([]time.Duration, len(l.parts))
	for i, p := range l.parts {
		out[i] = part(p)
	}
	return out
}

// quantile returns the smallest time that a share p of the times does not exceed, in
// microseconds; 0 of none.
func quantile(times []time.Duration, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return us(sorted[int(math.Ceil(p*float64(len(sorted))))-1])
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// A bench is a run of the verb.
type bench struct {
	queries []benchQuery
	lines   []*benchLine // operation by operation
	items   int          // that are searched
	oracle  *checkScan   // nil without --check
	bar     *term.Progress
}

// newBench reads the codes for what does not come from the database.
func newBench(ctx context.Context, target benchTarget, bits int, o *benchPlan, queries []benchQuery, bar *term.Progress) (*bench, error) {
	b := &bench{queries: queries, bar: bar}
	full := newFullScan(bits)
	if o.check {
		b.oracle = newCheckScan(bits)
	}
	useFull := slices.Contains(o.tiers, fullScanTier)
	err := target.each(ctx, func(row uint32, key string, code []byte) error {
		b.items++
		if useFull {
			full.add(row, code)
		}
		if o.check {
			b.oracle.add(row, key, code)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case b.items == 0:
		return nil, exit.Failedf("there are no items to search: import some")
	}
	for _, op := range o.ops() {
		for _, name := range o.tiers {
			l := &benchLine{benchOp: op, tier: name, searches: full}
			switch {
			case name != fullScanTier:
				l.searches = target.tier(name)
			case op.op == "hits":
				continue // it has no keys
			}
			b.lines = append(b.lines, l)
		}
	}
	return b, nil
}

// A turn of a tier is so many queries. Before it, as many others are run and not
// counted, for some time at most, so that what the tier needs is back in the
// caches: the tier before it may have read all codes.
const (
	benchTurn = 1000
	benchWarm = 200 * time.Millisecond
)

// measure fills in the times of all lines.
func (b *bench) measure(ctx context.Context) error {
	runtime.GC() // the files that were read leave garbage
	done := 0
	for from := 0; from < len(b.lines); {
		to := from
		for to < len(b.lines) && b.lines[to].benchOp == b.lines[from].benchOp {
			to++
		}
		for q := 0; q < len(b.queries); q += benchTurn {
			end := min(q+benchTurn, len(b.queries))
			for _, l := range b.lines[from:to] {
				b.bar.Report("measuring", int64(done), int64(len(b.lines)*len(b.queries)))
				if err := b.turn(ctx, l, q, end); err != nil {
					return err
				}
				done += end - q
			}
		}
		from = to
	}
	return nil
}

// turn measures the queries from to to-1.
func (b *bench) turn(ctx context.Context, l *benchLine, from, to int) error {
	began, n := time.Now(), len(b.queries)
	for i := 0; i < benchTurn && time.Since(began) < benchWarm; i++ {
		if _, err := l.run(ctx, &b.queries[((from-i-1)%n+n)%n]); err != nil {
			return exit.Wrap(err, "while measuring %s by %s", l.benchOp, l.tier)
		}
	}
	for i := from; i < to; i++ {
		start := time.Now()
		hits, err := l.run(ctx, &b.queries[i])
		took := time.Since(start)
		if err != nil {
			return exit.Wrap(err, "while measuring %s by %s", l.benchOp, l.tier)
		}
		l.times = append(l.times, took)
		l.hits += hits
	}
	// The clock is read more often where the parts are measured, so that is a search of its own.
	for i := from; i < to; i++ {
		parts, err := l.searches.parts(ctx, &b.queries[i], l.benchOp)
		if err != nil {
			return exit.Wrap(err, "while measuring the parts of %s by %s", l.benchOp, l.tier)
		}
		l.parts = append(l.parts, parts)
	}
	return nil
}
