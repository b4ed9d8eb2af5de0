package measure

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

// An Op is an operation and its k or radius.
type Op struct {
	Kind string // knn, next, radius, hits or count
	N    int
}

// String returns the name of the operation in tables.
func (o Op) String() string { return fmt.Sprintf("%s %d", o.Kind, o.N) }

// firstHits is the number of hits that the operation hits reads.
const firstHits = 100

// A Plan says what to measure.
type Plan struct {
	K, Radius []int // default: the 10 nearest items
	Tiers     []string
	Check     bool // compare every answer with a linear scan

	// Orders are what answers with keys are ranked by, one after the other. With none, it is
	// what a search takes by itself, and no second page is measured.
	Orders []db.Rerank

	// Recalls are what searches by vectors are asked for, one after the other (NewByVectors).
	Recalls []float64
}

func (o *Plan) ops() []Op {
	if len(o.K)+len(o.Radius) == 0 {
		o.K = []int{10}
	}
	var ops []Op
	for _, k := range o.K {
		ops = append(ops, Op{"knn", k})
	}
	if len(o.Orders) > 0 {
		for _, k := range o.K {
			ops = append(ops, Op{"next", k})
		}
	}
	for _, r := range o.Radius {
		ops = append(ops, Op{"radius", r}, Op{"hits", r}, Op{"count", r})
	}
	return ops
}

// ranked reports whether the order matters to an operation: answers have keys.
func (o Op) ranked() bool { return o.Kind == "knn" || o.Kind == "next" || o.Kind == "hits" }

// A line is one measurement: an operation by a tier, and perhaps in an order.
type line struct {
	Op
	tier       string
	ordered    bool // it has an order of those of the plan
	order      db.Rerank
	cursors    map[*Query]string // of the second pages
	recall     float64           // that is asked for; 0: answers are by codes
	answers    []answer          // by query, of searches by vectors
	searches   Tier
	times      []time.Duration // by query
	parts      []Parts         // by query
	hits       int             // of all queries
	checked    int
	mismatches int
}

// Parts are the parts of the time of a search.
type Parts struct {
	Encode time.Duration // from the query to its code
	Find   time.Duration // from the code to the codes of the answer: the only part that a tier decides
	Order  time.Duration // ordering their items
	Keys   time.Duration // reading the keys of the hits
}

// run runs the operation once and returns the number of hits.
func (l *line) run(ctx context.Context, q *Query) (int, error) {
	ask := l.ask(q)
	switch l.Kind {
	case "knn", "next":
		r, err := l.searches.Search(ctx, ask)
		if err != nil {
			return 0, err
		}
		return len(r.Hits), nil
	case "count":
		return l.searches.Count(ctx, ask, l.N)
	}
	runs, err := l.searches.Radius(ctx, ask, l.N)
	if err != nil {
		return 0, err
	}
	n := runs.Total()
	if l.Kind == "hits" {
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

// ask returns the query for the tier.
func (l *line) ask(q *Query) db.Query {
	ask := q.Query
	if l.tier == FullScan {
		ask = db.Query{Code: q.Encoded} // the yardstick knows no model
	}
	if l.Kind == "knn" || l.Kind == "next" {
		ask.K = l.N
	}
	if l.ordered {
		ask.Rerank, ask.After = l.order, l.cursors[q]
	}
	ask.Recall = l.recall
	return ask
}

// prepare finds the cursor of the first page, if the operation is to read the second.
func (l *line) prepare(ctx context.Context, q *Query) error {
	if l.Kind != "next" || l.cursors[q] != "" {
		return nil
	}
	r, err := l.searches.Search(ctx, l.ask(q))
	if err != nil {
		return err
	}
	if l.cursors == nil {
		l.cursors = map[*Query]string{}
	}
	l.cursors[q] = r.Next
	return nil
}

// name returns the line in errors.
func (l *line) name() string {
	switch {
	case l.ordered:
		return fmt.Sprintf("%s by %s in the order %s", l.Op, l.tier, l.order)
	case l.recall > 0:
		return fmt.Sprintf("%s by recall %v", l.Op, l.recall)
	}
	return fmt.Sprintf("%s by %s", l.Op, l.tier)
}

// json returns the figures; they are zero if nothing was measured.
func (l *line) json(checked bool) lineJSON {
	j := lineJSON{Op: l.Kind, Tier: l.tier, Queries: len(l.times)}
	if l.ordered {
		j.RankedBy = l.order.String()
	}
	n := l.N
	if l.Kind == "knn" || l.Kind == "next" {
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
	j.Encode = quantile(l.each(func(p Parts) time.Duration { return p.Encode }), .5)
	j.Find = quantile(l.finding(), .5)
	j.Order = quantile(l.each(func(p Parts) time.Duration { return p.Order }), .5)
	j.Keys = quantile(l.each(func(p Parts) time.Duration { return p.Keys }), .5)
	return j
}

// finding returns the time of finding the codes, by query: the part that compares
// between tiers.
func (l *line) finding() []time.Duration {
	return l.each(func(p Parts) time.Duration { return p.Find })
}

func (l *line) each(part func(Parts) time.Duration) []time.Duration {
	out := make([]time.Duration, len(l.parts))
	for i, p := range l.parts {
		out[i] = part(p)
	}
	return out
}

// quantile returns the smallest time that a share p of the times does not exceed, in
// microseconds; 0 if there are none.
func quantile(times []time.Duration, p float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return us(sorted[int(math.Ceil(p*float64(len(sorted))))-1])
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// A Bench measures one collection.
type Bench struct {
	queries []Query
	lines   []*line     // grouped by operation
	items   int         // number of items that are searched
	oracle  *checkScan  // nil without --check
	orders  *checkOrder // nil without --check, or without orders
	target  Target
	bar     *term.Progress
}

// Run returns the measurements so far, with the name of the database.
func (b *Bench) Run(database string) Run { return Run{database, b.items, b.lines} }

// New returns a bench of a target. It reads the codes of all items for the tiers
// outside of the database and for the oracle.
func New(ctx context.Context, target Target, bits int, o *Plan, queries []Query, bar *term.Progress) (*Bench, error) {
	b := &Bench{queries: queries, target: target, bar: bar}
	full := newFullScan(bits)
	if o.Check {
		b.oracle = newCheckScan(bits)
	}
	useFull := slices.Contains(o.Tiers, FullScan)
	err := target.Each(ctx, func(row uint32, key string, code []byte) error {
		b.items++
		if useFull {
			full.add(row, code)
		}
		if o.Check {
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
		if op.Kind == "next" && op.N >= b.items {
			continue // the first page has all
		}
		for _, name := range o.Tiers {
			switch {
			case name != FullScan && len(o.Orders) > 0 && op.ranked():
				for _, order := range o.Orders {
					if op.Kind != "next" || order != db.RerankFeatures { // which has no cursors
						b.lines = append(b.lines, &line{Op: op, tier: name, searches: target.Tier(name), ordered: true, order: order})
					}
				}
			case name != FullScan:
				b.lines = append(b.lines, &line{Op: op, tier: name, searches: target.Tier(name)})
			case op.Kind != "hits" && op.Kind != "next": // the yardstick has no keys and no cursors
				b.lines = append(b.lines, &line{Op: op, tier: name, searches: full})
			}
		}
	}
	if o.Check && len(o.Orders) > 0 {
		b.orders, err = newCheckOrder(ctx, target, b.oracle)
	}
	return b, err
}

// A turn of a tier is so many queries. Before it so many others run uncounted, for a
// limited time, to bring the data of the tier back into the caches: the tier before it
// may have read all codes.
const (
	turnLength = 1000
	warmUp     = 200 * time.Millisecond
)

// Measure measures the times of all lines.
func (b *Bench) Measure(ctx context.Context) error {
	runtime.GC() // reading files has left garbage
	done := 0
	for from := 0; from < len(b.lines); {
		to := from
		for to < len(b.lines) && b.lines[to].Op == b.lines[from].Op {
			to++
		}
		for q := 0; q < len(b.queries); q += turnLength {
			end := min(q+turnLength, len(b.queries))
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
func (b *Bench) turn(ctx context.Context, l *line, from, to int) error {
	began, n := time.Now(), len(b.queries)
	for i := 0; i < turnLength && time.Since(began) < warmUp; i++ {
		q := &b.queries[((from-i-1)%n+n)%n]
		err := l.prepare(ctx, q)
		if err == nil {
			_, err = l.run(ctx, q)
		}
		if err != nil {
			return exit.Wrap(err, "while measuring %s", l.name())
		}
	}
	for i := from; i < to; i++ {
		if err := l.prepare(ctx, &b.queries[i]); err != nil {
			return exit.Wrap(err, "while measuring %s", l.name())
		}
		start := time.Now()
		hits, err := l.run(ctx, &b.queries[i])
		took := time.Since(start)
		if err != nil {
			return exit.Wrap(err, "while measuring %s", l.name())
		}
		l.times = append(l.times, took)
		l.hits += hits
	}
	if l.recall > 0 {
		return b.look(ctx, l, from, to)
	}
	// Measuring parts reads the clock more often, so it runs a search of its own.
	for i := from; i < to; i++ {
		q := b.queries[i]
		q.Query = l.ask(&b.queries[i])
		parts, err := l.searches.Parts(ctx, &q, l.Op)
		if err != nil {
			return exit.Wrap(err, "while measuring the parts of %s", l.name())
		}
		l.parts = append(l.parts, parts)
	}
	return nil
}
