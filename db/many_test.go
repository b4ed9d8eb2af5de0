package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// SearchAll gives each query the answer that Search gives it, whatever the others
// ask for, by lookups, by scans that they share and from the store.
func TestSearchAllIsSearchOfEach(t *testing.T) {
	t.Parallel()
	const q = 64
	n := 6000
	if testing.Short() {
		n = 1000 // in race builds pebble notes a stack for each table that is looked into
	}
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: q})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	codes, err := synth.Codes(synth.Clustered, q, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		it := &db.Item{Code: codes.At(i).AppendBytes(nil, q)}
		if i%3 == 0 {
			it.Labels = []string{"third"}
		}
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
	members, fresh, err := synth.CodeQueries(synth.Clustered, q, n, 40, 1)
	if err != nil {
		t.Fatal(err)
	}
	var queries []db.Query
	for i := range 40 {
		queries = append(queries,
			db.Query{Code: members.At(i).AppendBytes(nil, q), K: 1 + i*i%200, Plan: db.Plan(i % 6)},
			db.Query{Code: fresh.At(i).AppendBytes(nil, q), Where: "label = 'third'", K: 5, Plan: db.Plan(i % 3)},
			db.Query{Key: fmt.Sprint(i)})
	}
	sameAlone(t, c, queries)
	if all, err := c.SearchAll(ctx, nil); len(all) != 0 || err != nil {
		t.Errorf("no queries: %v, %v", all, err)
	}
	queries[17].Code, queries[17].Where, queries[17].Key = nil, "", "nobody"
	var bad *db.QueryError
	if _, err := c.SearchAll(ctx, queries); !errors.Is(err, db.ErrNotFound) || !errors.As(err, &bad) || bad.Query != 17 {
		t.Errorf("a query by a key that is not there: %v", err)
	}
}

// The same where many queries meet in codes that thousands of items share, whose projections, or
// vectors, they are compared with together.
func TestSearchAllInLargeCodes(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(9000, synth.Config{Classes: 3, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}, Rows: 300})
	for range 2 { // the second time with the vectors, which the first search asks for
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Search(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"]}); err != nil {
			t.Fatal(err)
		}
	}
	var queries []db.Query
	for i := range 64 {
		q := db.Query{From: "text", Vector: items[i].Vectors["text"], Rerank: db.Rerank(i) % (db.RerankAsymmetric + 1), K: 1 + i*7}
		if i%9 == 0 {
			q.To = "image"
		}
		if i%11 == 0 {
			q.MinSimilarity = .3
			q.Rerank = db.RerankProjection
		}
		queries = append(queries, q)
	}
	sameAlone(t, c, queries)
}

// The same for queries by vector, in every order.
func TestSearchAllInEveryOrder(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Classes: 6, Noise: 2})
	for _, it := range items[100:] {
		it.Labels = nil
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	var queries []db.Query
	for i := range 40 {
		queries = append(queries, db.Query{From: "text", Vector: items[i].Vectors["text"], Rerank: db.Rerank(i) % (db.RerankAsymmetric + 1), Plan: db.Plan(i / 4 % 6), K: 1 + i})
	}
	sameAlone(t, c, queries)
}

// sameAlone compares the answers of SearchAll with that of Search to each query alone.
func sameAlone(t *testing.T, c *db.Collection, queries []db.Query) {
	t.Helper()
	all, err := c.SearchAll(ctx, queries)
	if err != nil || len(all) != len(queries) {
		t.Fatalf("%d answers, %v", len(all), err)
	}
	for i := range queries {
		one, err := c.Search(ctx, queries[i])
		if diff := cmp.Diff(one, all[i], cmpopts.EquateNaNs()); err != nil || diff != "" {
			t.Errorf("query %d, order %v, plan %v: %v, %s", i, queries[i].Rerank, queries[i].Plan, err, diff)
		}
	}
}
