package db

import (
	"context"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/mih"
)

// An Explain tells how a query was answered.
type Explain struct {
	Plan       string `json:"plan"`
	Substrings []int  `json:"substrings"` // tables of each segment of the index
	Probes     int    `json:"probes"`     // buckets, or postings, that were looked up
	Candidates int    `json:"candidates"` // codes in them, each time one is there
	Compared   int    `json:"compared"`   // of these, read and compared with the query
	Scanned    int    `json:"scanned"`    // codes read one after the other
	Tail       int    `json:"tail"`       // among them those that are not indexed yet
	Abandoned  bool   `json:"abandoned"`  // lookups were given up for a scan
	Codes      int    `json:"codes"`      // distinct codes found
	Hits       int    `json:"hits"`       // items returned
	Distinct   int    `json:"distinct"`   // codes in the collection

	// Predicted is the time of finding the codes for each plan that could have
	// been chosen, in microseconds; of a k-NN search by lookups only its
	// beginning, as the rest depends on what is found.
	Predicted map[string]float64 `json:"predicted_us"`

	EncodeUS  float64 `json:"encode_us"`  // from the query to its code
	SearchUS  float64 `json:"search_us"`  // finding the codes
	ResolveUS float64 `json:"resolve_us"` // items of the codes, in order, with keys
	KeysUS    float64 `json:"keys_us"`    // of ResolveUS, reading the keys

	found mih.Explain
}

// Explain answers a query as Search does, or within a radius that is not negative
// the first K items as SearchRadius, and tells how.
func (c *Collection) Explain(ctx context.Context, q Query, radius int) (*Explain, *Result, error) {
	c = c.orNone()
	if q.K == 0 {
		q.K = defaultK
	}
	e := new(Explain)
	var res *Result
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		start := time.Now()
		s, err := c.newSearcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.close()
		e.EncodeUS = microseconds(time.Since(start))
		s.explain = e
		if radius >= 0 {
			err = s.within(ctx, radius)
		} else {
			err = s.nearest(ctx, s.toFind(q.K))
		}
		if err != nil {
			return err
		}
		if res, err = s.first(ctx, q.K); err != nil {
			return err
		}
		e.found = *s.how()
		e.found.Substrings = slices.Clone(e.found.Substrings)
		e.Distinct = s.set.Codes
		e.Predicted = s.predict(radius)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	f := &e.found
	e.Plan, e.Substrings = f.Plan.String(), f.Substrings
	e.Probes, e.Candidates, e.Compared = f.Probes, f.Candidates, f.Compared
	e.Scanned, e.Tail, e.Abandoned, e.Codes = f.Scanned, f.Tail, f.Abandoned, f.Found
	return e, res, nil
}

// predict returns what the plans are predicted to take.
func (s *searcher) predict(radius int) map[string]float64 {
	out := map[string]float64{}
	if t := s.set.Table; t != nil {
		predicted := t.Predict
		if s.byScore && radius < 0 {
			predicted = func(q *mih.Query, _ int) map[Plan]float64 { return t.PredictBest(q) }
		}
		for plan, ns := range predicted(s.query(), radius) {
			out[plan.String()] = ns / 1000
		}
	}
	d := mih.Stored{Split: record.Split(s.set.Bits), Codes: s.set.Codes, Bits: s.set.Bits, Costs: &s.c.db.stored}
	r := radius
	if r < 0 {
		r = d.Split.Len() - 1
	}
	postings, scan := d.PredictRadius(r)
	out[PlanBlockScan.String()] = scan / 1000
	if !s.byScore || radius >= 0 { // postings find no scores
		out[PlanDisk.String()] = postings / 1000
	}
	return out
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// The methods below do nothing where nobody asks.

func (e *Explain) now() (t time.Time) {
	if e != nil {
		t = time.Now()
	}
	return t
}

func (e *Explain) searched(start time.Time) {
	if e != nil {
		e.SearchUS = microseconds(time.Since(start))
	}
}

func (e *Explain) read(start time.Time) {
	if e != nil {
		e.KeysUS += microseconds(time.Since(start))
	}
}

func (e *Explain) resolved(start time.Time, hits int) {
	if e != nil {
		e.ResolveUS, e.Hits = microseconds(time.Since(start)), hits
	}
}
