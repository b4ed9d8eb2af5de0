package command

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	common
	from, vectors, codes string
	k, radius            []int
	recall               float64
	where                whereFlag
	queries              int
	target               targetFlag
}

func benchCommand(e *env) *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:     "bench DIR --vectors FILE --from NAME|--codes FILE",
		Short:   "Measure searches beside a scan",
		GroupID: groupLook,
		Long: usage.Prose(`
			Bench measures how long searches take, one at a time, with the rows of a file
			as queries. knn finds the -k nearest items with their keys; radius finds all
			items within --radius bits, without looking at each. Each search is measured as
			it is (auto) and by a scan of all codes or, where vectors answer, of all vectors
			(scan). Times are those of the median query (p50), of the slowest but one in a
			hundred (p99), and the mean, in microseconds.

			plan says how most of the queries were answered; see search --explain. Where
			vectors answer, found is the share of the hits of the scan that auto has found,
			on average over the queries. --recall asks for an answer by vectors, with that
			recall, also where codes would answer.`),
		Example: usage.Example(`
			fddhdb bench hashes.db --codes queries.npy -k 1,10,100 --radius 0,4,8
			fddhdb bench wiki.db --vectors query_text.npy --from text --to image --json
			fddhdb bench photos.db --vectors query.npy --from image --recall .95`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags().Changed("recall")); err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o.common, func(d *db.DB, c *db.Collection) error {
				return e.bench(cmd.Context(), d, c, &o)
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	o.target.register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.vectors, "vectors", "", "query by the vectors in `FILE`, which are of the modality --from")
	f.StringVar(&o.from, "from", "", "modality `NAME` of the vectors")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.IntSliceVarP(&o.k, "k", "k", nil,
		"a `LIST` of numbers of nearest items, such as 1,10,100 (10 without --radius)")
	f.IntSliceVar(&o.radius, "radius", nil, "a `LIST` of radii in bits, such as 0,4,8")
	f.Float64Var(&o.recall, "recall", 0, "search by vectors, for a recall such as .95")
	o.where.register(cmd)
	f.IntVar(&o.queries, "queries", 1000, "the first `N` rows of the file, at most")
	return cmd
}

// validate checks that flags go together.
func (o *benchOptions) validate(byRecall bool) error {
	switch {
	case (o.vectors == "") == (o.codes == ""):
		return exit.Usagef("bench needs queries: --vectors FILE with --from NAME, or --codes FILE")
	case (o.vectors == "") != (o.from == ""):
		return exit.Usagef("--from NAME is the modality of --vectors FILE: give both, or --codes alone")
	case o.queries < 1:
		return exit.Usagef("--queries %d: 1 or more are possible", o.queries)
	case byRecall && !(o.recall > 0 && o.recall <= 1):
		return exit.Usagef("--recall %v: above 0, up to 1, is possible", o.recall)
	case byRecall && (o.codes != "" || o.radius != nil):
		return exit.Usagef("--recall asks for the nearest vectors: leave out --codes and --radius")
	case o.k != nil && slices.Min(o.k) < 1:
		return exit.Usagef("-k %d: 1 or more are possible", slices.Min(o.k))
	case o.radius != nil && slices.Min(o.radius) < 0:
		return exit.Usagef("--radius %d: 0 or more are possible", slices.Min(o.radius))
	case o.k == nil && o.radius == nil:
		o.k = []int{10}
	}
	return nil
}

// A benchLine is a measurement in the form of --json.
type benchLine struct {
	Op      string   `json:"op"` // knn or radius
	K       *int     `json:"k,omitempty"`
	Radius  *int     `json:"radius,omitempty"`
	Tier    string   `json:"tier"` // auto or scan
	Plan    string   `json:"plan"` // by which most queries were answered
	Queries int      `json:"queries"`
	P50     float64  `json:"p50_us"`
	P99     float64  `json:"p99_us"`
	Mean    float64  `json:"mean_us"`
	AvgHits float64  `json:"avg_hits"`
	Found   *float64 `json:"recall_found,omitempty"` // of what the scan has found; where vectors answer

	n int // k or the radius
}

// A benchSearch is a search that is measured: the k nearest items, or all within a radius.
type benchSearch struct{ k, radius int } // the other one is 0, or -1

// bench measures a collection, and prints a line for each search by each tier.
func (e *env) bench(ctx context.Context, d *db.DB, c *db.Collection, o *benchOptions) error {
	queries, err := o.read(ctx, c)
	if err == nil {
		err = d.WaitForIndex(ctx)
	}
	if err != nil {
		return err
	}
	var searches []benchSearch
	for _, k := range o.k {
		searches = append(searches, benchSearch{k, -1})
	}
	for _, r := range o.radius {
		searches = append(searches, benchSearch{0, r})
	}
	bar := e.NewProgress()
	defer bar.End()
	runtime.GC() // reading files has left garbage
	var rows [][]any
	for i, s := range searches {
		bar.Report("measuring", int64(i), int64(len(searches)))
		auto, scan, err := s.measure(ctx, c, queries)
		if err != nil {
			return o.where.wrap(err)
		}
		for _, l := range []*benchLine{auto, scan} {
			if !o.json {
				rows = append(rows, l.row(scan))
			} else if err := e.PrintJSON(l); err != nil {
				return err
			}
		}
	}
	bar.End()
	if !o.json {
		e.PrintTable([]term.Column{term.Left("search"), term.Left("tier"), term.Left("plan"),
			term.Right("queries"), term.Right("p50 us"),
			term.Right("p99 us"), term.Right("mean us"), term.Right("hits"), term.Right("found"),
			term.Right("times scan")}, rows)
	}
	return nil
}

// row returns the row of the table, with how many times as fast as the scan the search is.
func (l *benchLine) row(scan *benchLine) []any {
	search, found := fmt.Sprint("radius ", l.n), term.NoCell
	if l.K != nil {
		search = fmt.Sprint("knn ", l.n)
	}
	if l.Found != nil {
		found = term.NumberCell(*l.Found, 3)
	}
	return []any{search, l.Tier, l.Plan, l.Queries, term.NumberCell(l.P50, 1), term.NumberCell(l.P99, 1),
		term.NumberCell(l.Mean, 1),
		// a clock may be coarse
		term.NumberCell(l.AvgHits, 1), found, term.NumberCell(scan.P50/max(l.P50, .001), 2)}
}

// measure measures a search as it is, and by a scan.
func (s benchSearch) measure(ctx context.Context, c *db.Collection,
	queries []db.Query) (auto, scan *benchLine, err error) {
	auto, answers, err := s.tier(ctx, c, "auto", queries)
	if err != nil {
		return nil, nil, err
	}
	byVectors := auto.Plan == "vectors" || auto.Plan == "cells"
	queries = slices.Clone(queries)
	for i := range queries {
		if byVectors {
			queries[i].Recall = 1
		} else {
			queries[i].Plan = db.PlanScan
		}
	}
	scan, all, err := s.tier(ctx, c, "scan", queries)
	if err == nil && byVectors {
		found := 0.0
		for i := range all {
			found += shareFound(answers[i], all[i])
		}
		found /= float64(len(all))
		auto.Found = &found
	}
	return auto, scan, err
}

// shareFound returns the share of the hits of an exact answer that another one has. A hit as similar as the
// last of the exact answer counts: either may stand there.
func shareFound(hits, all []db.Hit) float64 {
	if len(all) == 0 {
		return 1 // there is nothing to find
	}
	found := 0
	for _, h := range hits {
		if h.Similarity >= all[len(all)-1].Similarity {
			found++
		}
	}
	return float64(found) / float64(len(all))
}

// tier measures a search, and returns its answers. Each query is answered twice: first untimed, which says
// how, and brings what is needed into caches.
func (s benchSearch) tier(ctx context.Context, c *db.Collection, name string,
	queries []db.Query) (*benchLine, [][]db.Hit, error) {
	l := &benchLine{Op: "knn", K: &s.k, Tier: name, Queries: len(queries), n: s.k}
	if s.radius >= 0 {
		l.Op, l.K, l.Radius, l.n = "radius", nil, &s.radius, s.radius
	}
	var answers [][]db.Hit
	plans := map[string]int{}
	for _, q := range queries {
		q.K = max(s.k, 1)
		x, r, err := c.Explain(ctx, q, s.radius)
		if err != nil {
			return nil, nil, err
		}
		answers = append(answers, r.Hits)
		if plans[x.Plan]++; plans[x.Plan] > plans[l.Plan] {
			l.Plan = x.Plan
		}
	}
	var times []float64
	for _, q := range queries {
		q.K = s.k
		start := time.Now()
		hits, err := s.run(ctx, c, q)
		times = append(times, float64(time.Since(start).Nanoseconds())/1000)
		if err != nil {
			return nil, nil, err
		}
		l.AvgHits += float64(hits)
		l.Mean += times[len(times)-1]
	}
	n := float64(len(queries))
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(math.Ceil(share*float64(len(times))))-1] }
	l.P50, l.P99, l.Mean, l.AvgHits = at(.5), at(.99), math.Round(l.Mean/n*1000)/1000, l.AvgHits/n
	return l, answers, nil
}

// run searches, and returns the number of items that are found.
func (s benchSearch) run(ctx context.Context, c *db.Collection, q db.Query) (int, error) {
	if s.radius < 0 {
		r, err := c.Search(ctx, q)
		if err != nil {
			return 0, err
		}
		return len(r.Hits), nil
	}
	runs, err := c.SearchRadius(ctx, q, s.radius)
	if err != nil {
		return 0, err
	}
	return runs.Total(), runs.Close()
}

// read reads the queries of the file, and checks that they go with the collection.
func (o *benchOptions) read(ctx context.Context, c *db.Collection) ([]db.Query, error) {
	stats, err := c.Stats()
	if err != nil {
		return nil, err
	}
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	if err := checkTarget(c, schema, o.target.to); err != nil {
		return nil, err
	}
	switch items, err := c.Count(ctx, o.where.Expr); {
	case err != nil:
		return nil, o.where.wrap(err)
	case items == 0:
		return nil, exit.Failedf("there are no items to search")
	case o.codes != "" && !stats.Trained:
		return nil, untrained(c)
	}
	queries := make([]db.Query, 0, o.queries)
	base := db.Query{From: o.from, To: o.target.to, Where: o.where.Expr, Recall: o.recall}
	if o.codes != "" {
		codes, err := source.OpenCodes(o.codes)
		if err == nil {
			err = codes.CheckBits(c, stats.Bits)
		}
		if err != nil {
			return nil, err
		}
		for row := range min(codes.Rows(), o.queries) {
			base.Code = codes.At(row)
			queries = append(queries, base)
		}
	} else {
		m, err := source.FindModality(c.Name(), schema, "--from", o.from)
		if err != nil {
			return nil, err
		}
		vectors, err := source.OpenQueries(m, o.vectors)
		if err != nil {
			return nil, err
		}
		defer vectors.Close()
		if err := vectors.CheckDim(m); err != nil {
			return nil, err
		}
		for len(queries) < o.queries {
			if err := vectors.Read(); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			base.Vector, base.Sparse = vectors.Copy()
			queries = append(queries, base)
		}
	}
	if len(queries) == 0 {
		return nil, exit.Failedf("%s%s has no rows to search with", o.vectors, o.codes)
	}
	return queries, nil
}
