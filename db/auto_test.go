package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// withinCodes is what Explain says where vectors decide within a code.
const withinCodes = "vectors within codes"

// orderOf returns the order that a query is answered in.
func orderOf(t *testing.T, c *db.Collection, q db.Query) string {
	t.Helper()
	x, _, err := c.Explain(ctx, q, -1)
	if err != nil {
		t.Fatal(err)
	}
	return x.Rerank
}

// In the order auto vectors decide within a code where all items have the modality of the query, and
// projections where some lack it. What is written in between does not shift the pages of an answer that
// has begun.
func TestAutoOrder(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Classes: 4, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	lacking := &db.Item{Key: "no text", Vectors: map[string][]float32{"image": items[0].Vectors["image"]}}
	vector := items[7].Vectors["text"]
	for _, from := range []struct {
		order string
		put   bool // the item that lacks the modality comes between the pages; else it goes
	}{{withinCodes, true}, {"projection", false}} {
		q := db.Query{From: "text", To: "text", Vector: vector, K: 300}
		if got := orderOf(t, c, q); got != from.order {
			t.Fatalf("the order is %s, want %s", got, from.order)
		}
		want, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		q.K = 40
		page, err := c.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if from.put {
			putAll(t, c, []*db.Item{lacking})
		} else if _, err := c.Delete(ctx, lacking.Key); err != nil {
			t.Fatal(err)
		}
		if got := orderOf(t, c, q); got == from.order {
			t.Fatalf("the order is still %s", got)
		}
		got := page.Hits
		for q.After = page.Next; q.After != "" && len(got) <= len(want.Hits); q.After = page.Next {
			if page, err = c.Search(ctx, q); err != nil {
				t.Fatal(err)
			}
			got = append(got, page.Hits...)
		}
		if diff := cmp.Diff(want.Hits, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("pages in the order %s: %s", from.order, diff)
		}
	}
	// The cursor of another order goes on in neither.
	asymmetric, err := c.Search(ctx, db.Query{From: "text", Vector: vector, Rerank: db.RerankAsymmetric})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(ctx, db.Query{From: "text", Vector: vector, After: asymmetric.Next}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a cursor of the order asymmetric: %v", err)
	}
	for name, q := range map[string]db.Query{
		"by a code": {Code: make([]byte, 2)}, "by a stored code": {Key: "k1"}, "by a vector of zeros": {From: "text", Vector: make([]float32, 5)},
	} {
		if got := orderOf(t, c, q); got != "projection" {
			t.Errorf("%s: the order is %s", name, got)
		}
	}
}

// Vectors of many items do not decide.
func TestAutoOrderOfManyItems(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	item := func(i int) *db.Item {
		x := []float32{float32(i % 7), float32(i % 11), 1}
		return &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x}, Labels: []string{fmt.Sprint(i % 2)}}
	}
	batch := d.NewBatch()
	for i := range 40_000 {
		if err := batch.Put(c, item(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 4}, Rows: 100})
	q := db.Query{From: "image", Vector: []float32{1, 2, 3}}
	if got := orderOf(t, c, q); got != withinCodes {
		t.Errorf("40,000 items: %s", got)
	}
	putAll(t, c, []*db.Item{item(40_000)})
	if got := orderOf(t, c, q); got != "projection" {
		t.Errorf("40,001 items: %s", got)
	}
}
