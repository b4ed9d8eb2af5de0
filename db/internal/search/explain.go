package search

import (
	"time"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/mih"
)

// Timings are how long the parts of a search took, for db.Explain. The methods of a nil
// *Timings do nothing and do not read the clock, so that other searches pay nothing.
type Timings struct {
	Search  time.Duration // finding the codes
	Resolve time.Duration // items of the codes, in order, with keys
	Keys    time.Duration // of Resolve, reading the keys
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

// Predict returns the predicted time of each plan that can answer the query, in
// nanoseconds. A negative radius means a k-NN search, of which only the first lookups can
// be predicted: in the store those of a radius that takes one lookup for each substring.
// Plans in memory are missing while codes are being loaded.
func (s *Searcher) Predict(radius int) map[mih.Plan]float64 {
	out := map[mih.Plan]float64{}
	if t := s.Set.Table; t != nil {
		predicted := t.Predict
		if s.byScore && radius < 0 {
			predicted = func(q *mih.Query, _ int) map[mih.Plan]float64 { return t.PredictBest(q) }
		}
		for plan, ns := range predicted(s.query(), radius) {
			out[plan] = ns
		}
	}
	d := mih.Stored{Split: record.Split(s.Set.Bits), Codes: s.Set.Codes, Bits: s.Set.Bits, Costs: s.tools.Costs}
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
