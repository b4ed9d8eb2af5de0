package search

import (
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

// Timings are the durations of the parts of a search, for report.Explain. The methods of a nil *Timings do
// nothing and do not read the clock, so other searches pay nothing.
type Timings struct {
	Encode  time.Duration // from the query to its code
	Search  time.Duration // finding the codes
	Resolve time.Duration // items of the codes, in order, with keys
	Keys    time.Duration // reading the keys, as part of Resolve
}

// now returns the start of a part, for the methods below.
func (t *Timings) now() (start time.Time) {
	if t != nil {
		start = time.Now()
	}
	return start
}

func (t *Timings) searched(start time.Time) {
	if t != nil {
		t.Search = time.Since(start)
	}
}

func (t *Timings) read(start time.Time) {
	if t != nil {
		t.Keys += time.Since(start)
	}
}

func (t *Timings) resolved(start time.Time) {
	if t != nil {
		t.Resolve = time.Since(start)
	}
}

// Report describes how the query was answered, with this number of hits.
func (s *Searcher) Report(hits int) *report.Explain {
	radius := s.radius
	f, t := s.How(), s.Explain
	scanned := scannedFields(s.Cv, s.q.Where, s.q.Args)
	if s.byVectors {
		e := &report.Explain{
			ScannedFields: scanned, DamagedIndexes: s.damaged, OutgrownIndexes: s.outgrown,
			Plan: "vectors", Rerank: s.orderName(), Substrings: []int{}, Scanned: s.vectorsToCompare(),
			Compared: s.compares,
			Metric:   string(s.metric), Modalities: s.namesCompared(),
			Hits: hits, Predicted: map[string]float64{},
			EncodeUS: microseconds(t.Encode), ResolveUS: microseconds(t.Resolve),
			KeysUS: microseconds(t.Keys),
		}
		if c := s.cells; c != nil {
			e.Probes, e.Candidates, e.Abandoned = c.looked.Cells, c.admitted, c.abandoned
			if s.Approximate() {
				e.Plan, e.Scanned, e.Recall = "cells", 0, c.expected
			}
		}
		if s.predicted.cells > 0 {
			e.Predicted["vectors"], e.Predicted["cells"] = s.predicted.vectors/1000, s.predicted.cells/1000
		}
		return e
	}
	e := &report.Explain{
		ScannedFields: scanned,
		Plan:          f.Plan.String(), Rerank: s.orderName(), Substrings: append([]int{}, f.Substrings...),
		Probes: f.Probes, Candidates: f.Candidates, Compared: f.Compared,
		Scanned: f.Scanned, Tail: f.Tail, Abandoned: f.Abandoned, Codes: f.Found, Recall: f.Recall,
		Hits: hits, Distinct: s.Set.Codes, Predicted: map[string]float64{},
		EncodeUS: microseconds(t.Encode), SearchUS: microseconds(t.Search),
		ResolveUS: microseconds(t.Resolve), KeysUS: microseconds(t.Keys),
	}
	for plan, ns := range s.predict(radius) {
		e.Predicted[plan.String()] = ns / 1000
	}
	return e
}

// orderName names the order of the hits.
func (s *Searcher) orderName() string {
	switch {
	case s.byVectors:
		return "vectors"
	case s.q.Order == byAuto:
		return "vectors within codes"
	}
	return OrderNames[s.q.Order]
}

// vectorsToCompare returns the number of vectors to compare with the query.
func (s *Searcher) vectorsToCompare() (n int) {
	for _, c := range s.compared {
		if c.rows == nil {
			return s.size()
		}
		n += int(c.rows.GetCardinality())
	}
	return n
}

// namesCompared returns the names of the modalities whose vectors are compared.
func (s *Searcher) namesCompared() (names []string) {
	for _, t := range s.shares {
		names = append(names, s.Cv.Modalities[t].Name)
	}
	return names
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// predict returns the predicted time of each plan that can answer the query, in nanoseconds. A negative
// radius means a k-NN search. Only its first lookups in the store can be predicted: the lookups of a radius
// that takes one for each substring. Plans in memory are missing while codes are being loaded.
func (s *Searcher) predict(radius int) map[mih.Plan]float64 {
	out := map[mih.Plan]float64{}
	if t := s.Set.Table; t != nil {
		predicted := t.Predict
		if s.byScore && radius < 0 {
			predicted = func(q *mih.Query, _ int) map[mih.Plan]float64 { return t.PredictBest(q) }
		}
		for plan, ns := range predicted(&mih.Query{Code: s.p.Code, Filter: s.filter, Plan: s.plan}, radius) {
			out[plan] = ns
		}
	}
	d := mih.Stored{Split: record.Split(s.Set.Bits), Codes: s.Set.Codes, Bits: s.Set.Bits,
		Costs: s.tools.Costs}
	r := radius
	if r < 0 {
		r = d.Split.Len() - 1
	}
	postings, scan := d.PredictRadius(r)
	out[mih.PlanBlockScan] = scan
	if !s.byScore || radius >= 0 { // postings find no scores
		out[mih.PlanDisk] = postings
	}
	return out
}

// ops are the calls that are counted by plan.
var ops = [...]event.Op{event.OpSearch, event.OpSearchRadius}

const plans = mih.PlanCells + 1

// figures count finished searches. Safe for concurrent use.
type figures struct {
	byPlan [len(ops)][plans]signal.Latencies // searches answered
	all    signal.Latencies                  // answered calls of SearchAll
	errors atomic.Uint64                     // calls that returned an error
	hits   atomic.Uint64                     // items returned
}

// Searched counts a finished search.
func (c *figures) Searched(call signal.Call, op event.Op, plan mih.Plan, hits int, err error) {
	switch {
	case err != nil:
		c.errors.Add(1)
	case op == event.OpSearch:
		c.byPlan[0][plan].Observe(call.Took())
		c.hits.Add(uint64(hits))
	default:
		c.byPlan[1][plan].Observe(call.Took())
	}
}

// SearchedAll counts a finished SearchAll.
func (c *figures) SearchedAll(call signal.Call, hits int, err error) {
	if err != nil {
		c.errors.Add(1)
	} else {
		c.all.Observe(call.Took())
		c.hits.Add(uint64(hits))
	}
}

// Activity fills in the figures of searches.
func (t *Tools) Activity(a *report.Activity) {
	f := &t.figures
	a.SearchErrors, a.Hits = f.errors.Load(), f.hits.Load()
	a.KeyCacheBytes, a.KeyCacheMisses = t.Keys.Size.Load(), t.Keys.Misses.Load()
	for i, op := range ops {
		for plan := range f.byPlan[i] {
			if l := f.byPlan[i][plan].Stats(); l.Count > 0 {
				a.Searches = append(a.Searches, report.SearchStats{Op: op, Plan: mih.Plan(plan).String(),
					Latencies: l})
			}
		}
	}
	if l := f.all.Stats(); l.Count > 0 {
		a.Searches = append(a.Searches, report.SearchStats{Op: event.OpSearchAll, Latencies: l})
	}
}
