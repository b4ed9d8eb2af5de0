package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// keysOf returns the keys of hits.
func keysOf(hits []db.Hit) []string {
	var keys []string
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// The item that a query starts from is the first of those that share its code, however
// many these are, unless it is left out.
func TestQueryByKeyFindsItselfFirst(t *testing.T) {
	_, c := dbkit.OpenCoded(t, 8)
	var items []*db.Item
	for i := range 300 {
		items = append(items, &db.Item{Key: fmt.Sprint("same", i), Code: []byte{5}}, &db.Item{Key: fmt.Sprint("near", i), Code: []byte{4}})
	}
	putAll(t, c, items)
	for _, order := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
		for _, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanDisk} {
			q := db.Query{Key: "same250", K: 10, Rerank: order, Plan: plan}
			res, err := c.Search(ctx, q)
			if want := []string{"same250", "same0", "same1"}; err != nil || len(res.Hits) != 10 || !slices.Equal(keysOf(res.Hits)[:3], want) {
				t.Fatalf("%v, %v: %v, %v", order, plan, res, err)
			}
			within, err := dbkit.FirstWithin(c, q, 0)
			if err != nil || within.Total != 300 || !slices.Equal(keysOf(within.Hits), keysOf(res.Hits)) {
				t.Errorf("%v, %v: within 0: %v, %v", order, plan, within, err)
			}
			// Read on to the end, it comes once.
			for _, k := range []int{1, 7, 299, 300} {
				hits, err := pages(c, q, k, func() {})
				keys := keysOf(hits)
				if err != nil || len(hits) != 600 || keys[0] != "same250" || len(slices.Compact(slices.Sorted(slices.Values(keys)))) != 600 {
					t.Errorf("%v, %v: by %d: %d hits, %v", order, plan, k, len(hits), err)
				}
			}

			q.ExcludeSelf = true
			if res, err = c.Search(ctx, q); err != nil || len(res.Hits) != 10 || res.Hits[0].Key != "same0" {
				t.Errorf("%v, %v: without itself: %v, %v", order, plan, res, err)
			}
			if within, err = dbkit.FirstWithin(c, q, 0); err != nil || within.Total != 299 || slices.Contains(keysOf(within.Hits), "same250") {
				t.Errorf("%v, %v: within 0 without itself: %v, %v", order, plan, within, err)
			}
			if n, err := c.CountRadius(ctx, q, 8); err != nil || n != 599 {
				t.Errorf("%v, %v: %d counted, %v", order, plan, n, err)
			}
			hits, err := pages(c, q, 7, func() {})
			if err != nil || len(hits) != 599 || slices.Contains(keysOf(hits), "same250") {
				t.Errorf("%v, %v: pages without itself: %d hits, %v", order, plan, len(hits), err)
			}
			// A cursor is of the one or the other.
			other := q
			other.After, other.ExcludeSelf = res.Next, false
			if _, err := c.Search(ctx, other); !errors.Is(err, db.ErrInvalid) {
				t.Errorf("%v, %v: the cursor of another query: %v", order, plan, err)
			}
		}
	}
	if _, err := c.Search(ctx, db.Query{Code: []byte{5}, ExcludeSelf: true}); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "starts from no item") {
		t.Errorf("a code excludes itself: %v", err)
	}

	// An item that comes anew behind a cursor is not shown twice.
	res, err := c.Search(ctx, db.Query{Key: "same250", K: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Delete(ctx, "same250"); err != nil {
		t.Fatal(err)
	}
	putAll(t, c, []*db.Item{{Key: "same250", Code: []byte{5}}})
	if res, err = c.Search(ctx, db.Query{Key: "same250", K: 400, After: res.Next}); err != nil || len(res.Hits) != 400 || slices.Contains(keysOf(res.Hits), "same250") {
		t.Errorf("behind itself: %v", err)
	}
}

// By features too, with filters and targets; what To or Where do not admit is no hit.
func TestQueryByFeaturesOfAnItem(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 3, Classes: 3, Missing: .2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	codes := map[string]string{}
	for _, it := range dbkit.AllItems(t, c) {
		codes[it.Key] = string(it.Code)
	}
	for _, it := range items[100:120] {
		for _, from := range []string{"", "image", "text"} {
			for _, to := range []string{"", "image", "text"} {
				for _, order := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
					q := db.Query{Key: it.Key, From: from, To: to, Rerank: order, K: len(items)}
					res, err := c.Search(ctx, q)
					if err != nil {
						t.Fatal(err)
					}
					at := slices.IndexFunc(res.Hits, func(h db.Hit) bool { return h.Key == it.Key })
					if is := to == "" || it.Vectors[to] != nil; is != (at >= 0) {
						t.Fatalf("%+v: it is at %d", q, at)
					}
					for i, h := range res.Hits[:max(at, 0)] {
						if codes[h.Key] == codes[it.Key] {
							t.Fatalf("%+v: %s of the same code is at %d, it itself at %d", q, h.Key, i, at)
						}
					}
					if byCode := from == "" || it.Vectors[from] == nil; byCode && at > 0 {
						t.Errorf("%+v: its code is the query, and it is at %d", q, at)
					}
					q.ExcludeSelf = true
					rest, err := c.Search(ctx, q)
					if want := slices.DeleteFunc(keysOf(res.Hits), func(k string) bool { return k == it.Key }); err != nil || !slices.Equal(keysOf(rest.Hits), want) {
						t.Errorf("%+v: %d hits, want %d: %v", q, len(rest.Hits), len(want), err)
					}
				}
			}
		}
	}
}
