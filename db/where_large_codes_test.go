package db_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A filter holds within a code that many items share as it does between codes: in every order, by every plan, for few
// hits and for all, within a radius, page by page and in counts. Learned codes are a few that most items share.
func TestFiltersWithinLargeCodes(t *testing.T) {
	t.Parallel()
	const n = 1500
	for _, learned := range []bool{true, false} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
		schema := db.Schema{Bits: 16}
		items := dbkit.CodeItems(n, 16, 1, nil)
		if learned {
			schema, items = dbkit.PairsSchema, dbkit.Pairs(n, synth.Config{Classes: 2})
		}
		schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "month", Type: db.Int}}
		c, err := d.CreateCollection(ctx, "main", schema)
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range items {
			it.Fields = map[string]any{"year": 2000 + i%3, "month": i % 12}
			if !learned {
				it.Key = fmt.Sprint("k", i)
				it.Code = []byte{byte(i % 2), 0}
			}
		}
		dbkit.PutAll(t, d, c, items)
		queries := []db.Query{{Code: []byte{1, 0}}, {Code: []byte{1, 128}, Plan: db.PlanDisk}, {Key: items[4].Key}, {Key: items[4].Key, ExcludeSelf: true}}
		if learned {
			dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
			queries = nil
			x := items[4].Vectors["image"]
			for _, order := range []db.Rerank{db.RerankAuto, db.RerankNone, db.RerankProjection, db.RerankAsymmetric} {
				queries = append(queries, db.Query{From: "image", To: "text", Vector: x, Rerank: order})
			}
			queries = append(queries, db.Query{From: "image", Key: items[4].Key, Rerank: db.RerankProjection})
		}
		o, err := dbtest.NewOracle(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		share := map[string]int{}
		for _, it := range dbkit.AllItems(t, c) {
			share[string(it.Code)]++
		}
		for code, items := range share {
			if items < 600 {
				t.Fatalf("%d items have the code %x: the test needs more", items, code)
			}
		}
		for _, where := range []string{"year = 2001", "month = 7", "year = 2001 AND month < 6"} {
			if err := o.CheckWhere(ctx, where); err != nil {
				t.Error(err)
			}
			for _, q := range queries {
				for _, q.K = range []int{20, n} {
					q.Where = where
					if err := o.CheckSearch(ctx, q); err != nil {
						t.Error(err)
					}
				}
				q.K = 0
				if err := o.CheckRadius(ctx, q, 2); err != nil {
					t.Error(err)
				}
				checkWithin(t, c, q, items)
			}
		}
		dbkit.MustClose(t, d)
	}
}

// checkWithin compares the runs within a radius that takes in everything, and a search for those that are similar enough,
// with the hits of a search for all.
func checkWithin(t *testing.T, c *db.Collection, q db.Query, items []*db.Item) {
	t.Helper()
	q.K = len(items)
	all, err := c.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	rows, at := map[uint32]bool{}, map[int]int{}
	var similar []db.Hit
	for _, h := range all.Hits {
		rows[h.Row] = true
		at[h.Distance]++
		if h.Similarity >= .3 {
			similar = append(similar, h)
		}
	}
	runs, err := c.SearchRadius(ctx, q, 1000)
	if err != nil {
		t.Fatal(err)
	}
	distances, err := runs.Distances(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for r, err := range runs.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			if found++; !rows[row] {
				t.Errorf("%+v: row %d is in a run, and no hit", q, row)
				break
			}
		}
	}
	if err := runs.Close(); err != nil {
		t.Error(err)
	}
	for distance, n := range distances {
		if n != at[distance] {
			t.Errorf("%+v: %d items are counted at %d bits, %d hits are there", q, n, distance, at[distance])
		}
	}
	if found != len(all.Hits) {
		t.Errorf("%+v: %d rows in runs, %d hits", q, found, len(all.Hits))
	}
	if q.Rerank != db.RerankProjection {
		return
	}
	q.MinSimilarity = .3
	r, err := c.Search(ctx, q)
	if err != nil || len(similar) == 0 || len(similar) == len(all.Hits) {
		t.Fatalf("%+v: %d of %d hits are similar enough, %v", q, len(similar), len(all.Hits), err)
	}
	if !sameHits(r.Hits, similar) {
		t.Errorf("%+v: %d hits are similar enough, want %d", q, len(r.Hits), len(similar))
	}
}
