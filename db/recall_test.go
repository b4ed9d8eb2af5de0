package db_test

import (
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A search among given codes may leave items out, if it is asked to, and says so. What it returns is at its
// distance, in order, and matches.
func TestCodesByRecall(t *testing.T) {
	const n, bits, k = 24_000, 1024, 10
	codes := need(synth.Codes(synth.Projected, bits, n, 5))(t)
	_, fresh := need2(synth.CodeQueries(synth.Projected, bits, n, 60, 5))(t)
	items := made(n, func(i int) *db.Item {
		it := &db.Item{Code: codes.At(i).AppendBytes(nil, bits)}
		if i%2 == 0 {
			it.Labels = []string{"even"}
		}
		return it
	})
	d, c := openNew(t, t.TempDir(), nil, db.Schema{Bits: bits}, items...)
	defer func() { must(t, d.Close()) }()
	must(t, d.WaitForIndex(ctx))
	found, all, byCells := 0, 0, 0
	for i := range fresh.Len() {
		for _, where := range []string{"", "label = 'even'"} {
			q := db.Query{Code: fresh.At(i).AppendBytes(nil, bits), K: k, Where: where}
			exact := need(c.Search(ctx, q))(t)
			failIf(t, exact.Approximate, "an exact answer is approximate")
			q.Recall, q.Include = .9, db.IncludeExplain|db.IncludeLabels
			some := need(c.Search(ctx, q))(t)
			failIf(t, len(some.Hits) != k, "%d hits", len(some.Hits))
			failIf(t, some.Approximate != (some.Explain.Plan == "cells"), "%+v", some)
			if some.Approximate {
				byCells++
				failIf(t, some.Explain.Recall != .9, "%+v", some.Explain)
			}
			for j, h := range some.Hits {
				failIf(t, j > 0 && h.Distance < some.Hits[j-1].Distance, "%v", some.Hits)
				failIf(t, where != "" && !slices.Contains(h.Item.Labels, "even"), "%v", h)
				if h.Distance <= exact.Hits[k-1].Distance {
					found++
				}
			}
			all += k

			// The next page is behind this one, and has nothing twice.
			if some.Next == "" {
				continue
			}
			q.After = some.Next
			next := need(c.Search(ctx, q))(t)
			for _, h := range next.Hits {
				failIf(t, h.Distance < some.Hits[k-1].Distance || slices.ContainsFunc(some.Hits,
					func(x db.Hit) bool { return x.Key == h.Key }), "%v is behind %v", h, some.Hits[k-1])
			}
		}
	}
	failIf(t, byCells == 0, "no answer is by cells")
	failIf(t, float64(found) < .87*float64(all), "%d of %d are found", found, all)

	q := db.Query{Code: items[0].Code, Recall: .9}
	together := need(c.SearchAll(ctx, []db.Query{q, q}))(t)
	for _, r := range together {
		failIf(t, r.Hits[0].Distance != 0, "%v", r.Hits)
	}
	_, err := c.SearchRadius(ctx, q, 3)
	errorIs(t, err, db.ErrInvalid, "a radius finds all")
	q.Recall = 2
	errorIs(t, errOf(c.Search(ctx, q)), db.ErrInvalid, "recall 2")
}
