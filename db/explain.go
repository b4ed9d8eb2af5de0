package db

import (
	"context"
	"time"

	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// An Explain tells how a query was answered.
type Explain struct {
	Plan       string `json:"plan"`
	Substrings []int  `json:"substrings"` // tables of each segment of the index; empty where there is none
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
}

// Explain answers a query as Search does, or within a radius that is not negative
// the first K items as SearchRadius, and tells how.
func (c *Collection) Explain(ctx context.Context, q Query, radius int) (*Explain, *Result, error) {
	c = c.orNone()
	if q.K == 0 {
		q.K = defaultK
	}
	var e *Explain
	res := new(Result)
	err := c.read(func(v *state.View, cv *state.CollectionView) error {
		start := time.Now()
		s, err := c.searcher(ctx, v, cv, &q)
		if err != nil {
			return err
		}
		defer s.Close()
		encode := time.Since(start)
		s.Explain = new(search.Timings)
		if radius >= 0 {
			err = s.Within(ctx, radius)
		} else {
			err = s.Nearest(ctx, s.ToFind(q.K))
		}
		if err != nil {
			return err
		}
		if err := res.fill(ctx, s, q.K); err != nil {
			return err
		}
		f, t := s.How(), s.Explain
		e = &Explain{
			Plan: f.Plan.String(), Substrings: append([]int{}, f.Substrings...),
			Probes: f.Probes, Candidates: f.Candidates, Compared: f.Compared,
			Scanned: f.Scanned, Tail: f.Tail, Abandoned: f.Abandoned, Codes: f.Found,
			Hits: len(res.Hits), Distinct: s.Set.Codes, Predicted: map[string]float64{},
			EncodeUS: microseconds(encode), SearchUS: microseconds(t.Search),
			ResolveUS: microseconds(t.Resolve), KeysUS: microseconds(t.Keys),
		}
		for plan, ns := range s.Predict(radius) {
			e.Predicted[plan.String()] = ns / 1000
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return e, res, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
