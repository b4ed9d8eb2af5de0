package command

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A benching is a run of bench.
type benching struct {
	*run.Verb
	from, to, vectors, codes string
	k, radius                []int
	atLeast                  float64 // recall
	codesOnly                bool    // items bring their codes
	most                     int     // queries
}

func benchCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "bench DIR --vectors FILE --from NAME|--codes FILE", "Measure searches beside a scan", `
		Bench measures how long searches take, one at a time, with the rows of a file
		as queries. knn finds the -k nearest items with their keys; radius finds all
		items within --radius bits, without looking at each. Each search is measured as
		it is (auto) and by a scan of all codes or, where vectors answer, of all vectors
		(scan). Times are those of the median query (p50), of the slowest but one in a
		hundred (p99), and the mean, in microseconds.

		plan says how most of the queries were answered; see search --explain. found is
		the share of the hits of the scan that auto has found, on average over the
		queries. --recall lets auto leave some out; where codes are learned it asks for
		an answer by vectors.`, `
		fddhdb bench hashes.db --codes queries.npy -k 1,10,100 --radius 0,4,8
		fddhdb bench wiki.db --vectors query_text.npy --from text --to image --json
		fddhdb bench photos.db --vectors query.npy --from image --recall .95`).
		OnCollection().InSpace().Filtered().PrintsLines()
	o := benching{Verb: v}
	v.Flags.StringVar(&o.vectors, "vectors", "", "query by the vectors in `FILE`, which are of the modality --from")
	v.Flags.StringVar(&o.from, "from", "", "modality `NAME` of the vectors")
	v.Flags.StringVar(&o.to, "to", "", "find items that have the modality `NAME`")
	v.Flags.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	v.Flags.IntSliceVarP(&o.k, "k", "k", nil,
		"a `LIST` of numbers of nearest items, such as 1,10,100 (10 without --radius)")
	v.Flags.IntSliceVar(&o.radius, "radius", nil, "a `LIST` of radii in bits, such as 0,4,8")
	flags.Recall(v.Flags, &o.atLeast, "the part `X` of the nearest to find, such as .95")
	v.Count(&o.most, "queries", 1000, 1, "the first `N` rows of the file, at most")
	return v.Does(func() error {
		switch {
		case (o.vectors == "") == (o.codes == ""):
			return exit.Usagef("bench needs queries: --vectors FILE with --from NAME, or --codes FILE")
		case (o.vectors == "") != (o.from == ""):
			return exit.Usagef("--from NAME is the modality of --vectors FILE: give both, or --codes alone")
		case v.Given("recall") && o.radius != nil:
			return exit.Usagef("--recall is of the nearest items: leave out --radius")
		case o.k != nil && slices.Min(o.k) < 1:
			return exit.Usagef("-k %d: 1 or more are possible", slices.Min(o.k))
		case o.radius != nil && slices.Min(o.radius) < 0:
			return exit.Usagef("--radius %d: 0 or more are possible", slices.Min(o.radius))
		case o.k == nil && o.radius == nil:
			o.k = []int{10}
		}
		return v.Share(o.run)
	})
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
	Found   *float64 `json:"recall_found,omitempty"` // of what the scan has found, if auto may miss some

	hits [][]db.Hit
}

// run measures a collection: each search as it is, and by a scan.
func (o *benching) run() error {
	queries, err := o.queries()
	if err == nil {
		err = o.DB.WaitForIndex(o.Ctx)
	}
	if err != nil {
		return err
	}
	if o.codesOnly && o.atLeast > 0 { // the first search has cells made
		q := queries[0]
		q.K = 1
		if _, err := o.Collection.Search(o.Ctx, q); err != nil {
			return err
		}
		if err := o.DB.WaitForIndex(o.Ctx); err != nil {
			return err
		}
	}
	runtime.GC() // reading files has left garbage
	var lines []*benchLine
	var rows [][]any
	for i := range len(o.k) + len(o.radius) {
		o.Progress().Report("measuring", int64(i), int64(len(o.k)+len(o.radius)))
		k, radius := 0, -1
		if i < len(o.k) {
			k = o.k[i]
		} else {
			radius = o.radius[i-len(o.k)]
		}
		auto, err := o.measure("auto", k, radius, queries)
		if err != nil {
			return err
		}
		byVectors := !o.codesOnly && (auto.Plan == "vectors" || auto.Plan == "cells")
		all := slices.Clone(queries)
		for i := range all {
			if byVectors {
				all[i].Recall = 1
			} else {
				all[i].Plan = db.PlanScan
			}
		}
		scan, err := o.measure("scan", k, radius, all)
		if err != nil {
			return err
		}
		if byVectors || auto.Plan == "cells" {
			auto.Found = shareFound(auto.hits, scan.hits)
		}
		for _, l := range []*benchLine{auto, scan} {
			search, found := fmt.Sprint("radius ", radius), term.NoCell
			if l.K != nil {
				search = fmt.Sprint("knn ", k)
			}
			if l.Found != nil {
				found = term.NumberCell(*l.Found, 3)
			}
			lines = append(lines, l)
			rows = append(rows, []any{search, l.Tier, l.Plan, l.Queries, term.NumberCell(l.P50, 1),
				term.NumberCell(l.P99, 1),
				term.NumberCell(l.Mean, 1), term.NumberCell(l.AvgHits, 1), found,
				term.NumberCell(scan.P50/max(l.P50, .001), 2)}) // a clock may be coarse
		}
	}
	return run.List(o.Verb, lines, func() {
		o.PrintTable([]term.Column{term.Left("search"), term.Left("tier"), term.Left("plan"),
			term.Right("queries"), term.Right("p50 us"), term.Right("p99 us"), term.Right("mean us"),
			term.Right("hits"), term.Right("found"), term.Right("times scan")}, rows)
	})
}

// shareFound returns the share of the hits of exact answers that other ones have, on average. A hit as near
// as the last of the exact answer counts: either may stand there.
func shareFound(answers, exact [][]db.Hit) *float64 {
	share := 0.0
	for i, all := range exact {
		found := 0
		for _, h := range answers[i] {
			if len(all) == 0 {
				break
			}
			last := all[len(all)-1]
			near := h.Distance <= last.Distance
			if h.Distance < 0 { // vectors were compared
				near = h.Similarity >= last.Similarity
			}
			if near {
				found++
			}
		}
		if len(all) == 0 {
			share++ // there is nothing to find
		} else {
			share += float64(found) / float64(len(all))
		}
	}
	share /= float64(len(exact))
	return &share
}

// measure measures a search for the nearest k or, if it is not negative, within a radius. Each query is
// answered twice. The first answer is not timed: it gives the plan, and fills the caches.
func (o *benching) measure(tier string, k, radius int, queries []db.Query) (*benchLine, error) {
	l := &benchLine{Op: "knn", K: &k, Tier: tier, Queries: len(queries)}
	if radius >= 0 {
		l.Op, l.K, l.Radius = "radius", nil, &radius
	}
	plans := map[string]int{}
	for _, q := range queries {
		q.K = max(k, 1)
		q.Include |= db.IncludeExplain
		var r *db.Result
		var err error
		if radius < 0 {
			r, err = o.Collection.Search(o.Ctx, q)
		} else {
			r, err = o.Collection.SearchRadius(o.Ctx, q, radius)
		}
		if err != nil {
			return nil, err
		}
		l.hits = append(l.hits, r.Hits)
		plan := r.Explain.Plan
		if plans[plan]++; plans[plan] > plans[l.Plan] {
			l.Plan = plan
		}
	}
	var times []float64
	for _, q := range queries {
		q.K = max(k, 1) // within a radius all are counted, and one is looked up
		start, hits := time.Now(), 0
		if radius < 0 {
			r, err := o.Collection.Search(o.Ctx, q)
			if err != nil {
				return nil, err
			}
			hits = len(r.Hits)
		} else {
			r, err := o.Collection.SearchRadius(o.Ctx, q, radius)
			if err != nil {
				return nil, err
			}
			hits = r.Total
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/1000)
		l.AvgHits += float64(hits)
		l.Mean += times[len(times)-1]
	}
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(math.Ceil(share*float64(len(times))))-1] }
	n := float64(len(queries))
	l.P50, l.P99, l.Mean, l.AvgHits = at(.5), at(.99), math.Round(l.Mean/n*1000)/1000, l.AvgHits/n
	return l, nil
}

// queries reads the queries of the file, and checks that they go with the collection.
func (o *benching) queries() (queries []db.Query, err error) {
	stats, err := o.Collection.Stats(o.Ctx)
	if err != nil {
		return nil, err
	}
	if o.to != "" {
		if _, err := o.FindModality("--to", o.to); err != nil {
			return nil, err
		}
	}
	switch items, err := o.Collection.Count(o.Ctx, o.Filter.Expr); {
	case err != nil:
		return nil, err
	case items == 0:
		return nil, exit.Failedf("there are no items to search")
	case o.codes != "" && !stats.Trained:
		return nil, run.Untrained(o.Collection)
	}
	keep := func(_ queryName, q db.Query) error {
		q.To, q.Where, q.Recall, q.Vector = o.to, o.Filter.Expr, o.atLeast, slices.Clone(q.Vector)
		if q.Sparse != nil {
			q.Sparse = &db.Sparse{Index: slices.Clone(q.Sparse.Index), Value: slices.Clone(q.Sparse.Value)}
		}
		if queries = append(queries, q); len(queries) == o.most {
			return errEnough
		}
		return nil
	}
	o.codesOnly = o.Schema.Bits > 0
	if o.codes != "" {
		err = eachCode(o.Verb, o.codes, stats.Bits, -1, keep)
	} else if m, bad := o.FindModality("--from", o.from); bad != nil {
		err = bad
	} else {
		err = eachVector(o.Verb, m, o.vectors, -1, keep)
	}
	if err == nil && len(queries) == 0 {
		err = exit.Failedf("%s%s has no rows to search with", o.vectors, o.codes)
	}
	if err == errEnough {
		err = nil
	}
	return queries, err
}
