package cluster_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// fromEnv returns the number of an environment variable, or another one.
func fromEnv(name string, other int) int {
	n := 0
	if _, err := fmt.Sscan(os.Getenv(name), &n); err != nil {
		return other
	}
	return n
}

// two asks a cluster and one database the same: two pages, of which the second goes on behind the cursor of
// the first. In every place it wants the same distance, score and similarity, and the same key unless others
// are as near.
func (p pair) two(what string, q db.Query, radius int) {
	p.t.Helper()
	ctx := p.t.Context()
	first := func(q db.Query) (*db.Result, error) {
		if radius < 0 {
			return p.one.Search(ctx, q)
		}
		runs, err := p.one.SearchRadius(ctx, q, radius)
		if err != nil {
			return nil, err
		}
		defer runs.Close()
		return runs.First(ctx, q.K)
	}
	pages := 2
	all := q
	all.K = pages * q.K
	want, err := first(all)
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	var got []db.Hit
	for cq := (cluster.Query{Query: q}); pages > 0; pages-- {
		var res *cluster.Result
		if radius < 0 {
			res, err = p.many.Search(ctx, cq)
		} else {
			res, err = p.many.SearchRadius(ctx, cq, radius)
		}
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		if radius >= 0 && res.Total != want.Total {
			p.t.Fatalf("%s: %d in all, want %d", what, res.Total, want.Total)
		}
		got = append(got, res.Hits...)
		if cq.After = res.Next; cq.After == "" {
			break
		}
	}
	if len(got) != len(want.Hits) {
		p.t.Fatalf("%s: %d hits, want %d", what, len(got), len(want.Hits))
	}
	as := func(a, b db.Hit) bool {
		// NaN is NaN
		return a.Distance == b.Distance && cmp.Compare(a.Score, b.Score) == 0 &&
			cmp.Compare(a.Similarity, b.Similarity) == 0
	}
	for i, h := range got {
		w := want.Hits[i]
		if !as(h, w) {
			p.t.Fatalf("%s: hit %d is %+v, want %+v", what, i, h, w)
		}
		near := 0
		for _, o := range want.Hits {
			if as(o, w) {
				near++
			}
		}
		if near == 1 && i < len(got)-1 && h.Key != w.Key { // behind the last there may be others as near
			p.t.Fatalf("%s: hit %d is %q, want %q", what, i, h.Key, w.Key)
		}
	}
}

// TestManyQueries compares a cluster with one database, query by query, in every order. With
// FDDHDB_QUERIES=10000, FDDHDB_ITEMS=1000000 and FDDHDB_LEARNED=20000 it is the figure of docs/BENCHMARKS.md.
func TestManyQueries(t *testing.T) {
	queries, n, learned := fromEnv("FDDHDB_QUERIES", 50), fromEnv("FDDHDB_ITEMS", 4000),
		fromEnv("FDDHDB_LEARNED", 400)
	h := build(t, 3, 2, 4, 1)
	c := h.connect()
	d := dbkit.MustOpen(t, t.TempDir(), &db.Options{NoSync: true})
	defer dbkit.MustClose(t, d)
	r := rand.New(rand.NewPCG(3, 4))

	codes, err := c.CreateCollection(t.Context(), "codes", db.Schema{Bits: 64})
	if err != nil {
		t.Fatal(err)
	}
	one := mustCreate(t, d, "codes", db.Schema{Bits: 64})
	items := dbkit.CodeItems(n, 64, 1, func(i int) string { return fmt.Sprint("k", i) })
	importAll(t, codes, items)
	dbkit.PutAll(t, d, one, items)
	p := pair{t: t, many: codes, one: one}
	for range queries {
		it := items[r.IntN(n)]
		code := slices.Clone(it.Code)
		code[r.IntN(8)] ^= byte(1 << r.IntN(8))
		p.two("by code", db.Query{Code: code, K: 10}, -1)
		p.two("within", db.Query{Code: code, K: 10}, 12+r.IntN(6))
		p.two("by key", db.Query{Key: it.Key, K: 10}, -1)
	}
	t.Logf("%d queries of %d codes, each by a code, within a radius and by a key, two pages each: the same hits", queries, n)

	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	single := mustCreate(t, d, "pairs", dbkit.PairsSchema)
	known := dbkit.Pairs(learned, synth.Config{Seed: 5})
	importAll(t, pairs, known)
	dbkit.PutAll(t, d, single, known)
	p = pair{t: t, many: pairs, one: single}
	vector := func() []float32 { // between two that are there
		a, b := known[r.IntN(len(known))].Vectors["image"], known[r.IntN(len(known))].Vectors["image"]
		v := slices.Clone(a)
		for i := range v {
			v[i] = .8*a[i] + .2*b[i]
		}
		return v
	}
	for range queries {
		p.two("by vectors", db.Query{From: "image", Vector: vector(), K: 10}, -1)
	}
	dbkit.MustTrain(t, single, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}})
	var file bytes.Buffer
	if err := single.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if _, err := pairs.ImportModel(t.Context(), &file, true); err != nil {
		t.Fatal(err)
	}
	for range queries {
		v := vector()
		for _, rerank := range []db.Rerank{db.RerankAuto, db.RerankProjection, db.RerankNone,
			db.RerankAsymmetric} {
			p.two(rerank.String(), db.Query{From: "image", Vector: v, To: "text", K: 10, Rerank: rerank}, -1)
			p.two(rerank.String()+" within", db.Query{From: "image", Vector: v, K: 10, Rerank: rerank}, 3)
		}
	}
	t.Logf("%d queries of %d learned items by vectors, and in each order of codes, also within a radius: the same hits", queries, learned)
}
