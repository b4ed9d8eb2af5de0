package db_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
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
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: bits}})
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
