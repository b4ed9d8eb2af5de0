package db_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// openMixed makes a learned collection of labelled and unlabelled items, some of
// which lack a modality: many codes, some of them shared.
func openMixed(t testing.TB, bits int) (c *db.Collection, items []*db.Item) {
	t.Helper()
	_, c, items = openMixedDB(t, bits)
	return c, items
}

// openMixedDB is openMixed with the database.
func openMixedDB(t testing.TB, bits int) (d *db.DB, c *db.Collection, items []*db.Item) {
	t.Helper()
	d, c = dbkit.OpenPairs(t)
	items = dbkit.Pairs(240, synth.Config{Classes: 5, Noise: 2})
	for i, it := range items {
		if i%2 == 1 {
			it.Labels = nil
		}
		if i%10 == 3 {
			delete(it.Vectors, "text")
		}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: bits}})
	return d, c, items
}

// The asymmetric order is that of the scores over all codes, and inside a code that
// of the cosines, as the default has it.
func TestAsymmetricOrder(t *testing.T) {
	dbkit.LongTest(t)
	c, items := openMixed(t, 32)
	other := 0
	for _, it := range items[:20] {
		q := db.Query{From: "image", To: "text", Vector: it.Vectors["image"], K: len(items)}
		byDistance, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		_, z, err := c.EncodeQuery(ctx, db.Query{From: "image", Vector: q.Vector})
		if err != nil {
			t.Fatal(err)
		}
		q.Rerank = db.RerankAsymmetric
		got, err := c.Search(ctx, q)
		if err != nil || len(got.Hits) != len(byDistance.Hits) {
			t.Fatalf("%d hits, want %d, %v", len(got.Hits), len(byDistance.Hits), err)
		}
		codes := map[string][]byte{}
		for item, err := range c.Items(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			codes[item.Key] = item.Code
		}
		// The runs of the answer by distance, put in the order of their scores by the
		// definition, are the answer; codes of one score are apart by rounding only.
		want := slices.Clone(byDistance.Hits)
		slices.SortStableFunc(want, func(a, b db.Hit) int {
			return cmp.Compare(oracle.Score(z, string(codes[b.Key])), oracle.Score(z, string(codes[a.Key])))
		})
		for i := range want {
			if g, w := got.Hits[i], want[i]; g != w && math.Abs(g.Score-w.Score) > 1e-9 {
				t.Fatalf("hit %d: %+v, want %+v", i, g, w)
			}
			if got.Hits[i] != byDistance.Hits[i] {
				other++
			}
		}
	}
	if other == 0 {
		t.Error("the orders are the same")
	}
}

// featuredAnswer is the order by features of the first items of an answer.
func featuredAnswer(hits []db.Hit, n int, x []float32, vectors map[string][]float32) []db.Hit {
	out := slices.Clone(hits)
	squared := func(h db.Hit) float64 {
		if vectors[h.Key] == nil {
			return math.Inf(1)
		}
		sum := 0.0
		for j, y := range vectors[h.Key] {
			sum += (float64(x[j]) - float64(y)) * (float64(x[j]) - float64(y))
		}
		return sum
	}
	slices.SortStableFunc(out[:min(n, len(out))], func(a, b db.Hit) int { return cmp.Compare(squared(a), squared(b)) })
	return out
}

// The first items by code come by their features, and what follows as it was, in
// every way to ask.
func TestFeaturesOrderTheWindow(t *testing.T) {
	dbkit.LongTest(t)
	c, items := openMixed(t, 32)
	vectors := map[string][]float32{}
	for _, it := range items {
		vectors[it.Key] = it.Vectors["text"]
	}
	for _, window := range []int{0, 1, 30, 1000} {
		for _, k := range []int{1, 10, 60, 240} {
			q := db.Query{From: "text", To: "image", Key: "k7", K: 240, Rerank: db.RerankProjection}
			plain, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			size := max(k, window)
			if window == 0 {
				size = max(200, 2*k)
			}
			want := featuredAnswer(plain.Hits, size, vectors["k7"], vectors)
			if size >= len(plain.Hits) && want[0].Key != "k7" {
				t.Fatalf("the item itself is not the first: %+v", want[0])
			}
			q.Rerank, q.Window, q.K = db.RerankFeatures, window, k
			res, err := c.Search(ctx, q)
			if err != nil || !oracle.SameHits(res.Hits, want[:k]) || res.Next != "" {
				t.Fatalf("window %d, k = %d: %v", window, k, err)
			}
			if _, res, err = c.Explain(ctx, q, -1); err != nil || !oracle.SameHits(res.Hits, want[:k]) {
				t.Fatalf("window %d, k = %d: explained: %v", window, k, err)
			}
			hits, err := dbkit.Collect(c.Neighbors(ctx, q))
			if err != nil || !oracle.SameHits(hits, want) {
				t.Fatalf("window %d, k = %d: neighbours: %v", window, k, err)
			}
			const radius = 14
			near := featuredAnswer(within(plain.Hits, radius), size, vectors["k7"], vectors)
			if res, err = dbkit.FirstWithin(c, q, radius); err != nil || !oracle.SameHits(res.Hits, near[:min(k, len(near))]) || res.Total != len(near) || res.Next != "" {
				t.Fatalf("window %d, k = %d: within: %v", window, k, err)
			}
			runs, err := c.SearchRadius(ctx, q, radius)
			if err != nil {
				t.Fatal(err)
			}
			if hits, err = dbkit.Collect(runs.Hits(ctx)); err != nil || !oracle.SameHits(hits, near) {
				t.Fatalf("window %d, k = %d: runs: %v", window, k, err)
			}
			runs.Close()
		}
	}
}

func TestFeaturesRefuse(t *testing.T) {
	c, items := openMixed(t, 16)
	text := items[0].Vectors["text"]
	if _, err := c.Put(ctx, &db.Item{Key: "image", Vectors: map[string][]float32{"image": items[1].Vectors["image"]}, Fields: map[string]any{"year": int64(7)}}); err != nil {
		t.Fatal(err)
	}
	page, err := c.Search(ctx, db.Query{From: "text", Vector: text})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		q    db.Query
		says string
	}{
		"a code":               {db.Query{Code: []byte{1, 2}}, "by code"},
		"a key without from":   {db.Query{Key: "k0"}, "by code"},
		"a key without it":     {db.Query{Key: "k3", From: "text"}, "by code"},
		"a cursor":             {db.Query{From: "text", Vector: text, After: page.Next}, "no cursors"},
		"of no item":           {db.Query{From: "text", Vector: text, Where: "year = 7"}, `modality "text", which no item`},
		"of no item that it's": {db.Query{From: "text", Vector: text, Where: "NOT has(text)"}, `modality "text", which no item`},
	} {
		tc.q.Rerank = db.RerankFeatures
		_, serr := c.Search(ctx, tc.q)
		_, rerr := c.SearchRadius(ctx, tc.q, 3)
		for _, err := range []error{serr, rerr} {
			if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Where nothing matches, there is nothing to say of features.
	res, err := c.Search(ctx, db.Query{From: "text", Vector: text, Where: "year = 8", Rerank: db.RerankFeatures})
	if err != nil || len(res.Hits) != 0 {
		t.Errorf("%v, %v", res, err)
	}
}

// A cursor of one order is of no use in another; a query by code has no scores, and
// is answered by distance.
func TestAsymmetricByCodeAndCursors(t *testing.T) {
	c, items := openMixed(t, 16)
	q := db.Query{Code: []byte{1, 2}, K: 300, Rerank: db.RerankNone}
	want, err := c.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	q.Rerank = db.RerankAsymmetric
	if got, err := c.Search(ctx, q); err != nil || !oracle.SameHits(got.Hits, want.Hits) {
		t.Errorf("by code: %v", err)
	}
	q = db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankAsymmetric}
	page, err := c.Search(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	q.Rerank, q.After = db.RerankProjection, page.Next
	if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a cursor of another order: %v", err)
	}
}

// Explain says what was read, and predicts what can be chosen.
func TestExplainAsymmetric(t *testing.T) {
	c, items := openMixed(t, 16)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankAsymmetric, Plan: db.PlanDisk}
	e, _, err := c.Explain(ctx, q, -1)
	if err != nil || e.Plan != "blockscan" || e.Scanned != e.Distinct || e.Codes == 0 || e.Predicted["disk"] != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	q.Plan = db.PlanAuto
	if e, _, err = c.Explain(ctx, q, -1); err != nil || e.Plan != "scan" || e.Predicted["scan"] == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}
