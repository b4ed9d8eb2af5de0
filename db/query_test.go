package db_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func TestSearchRefuses(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	text := items[0].Vectors["text"]
	if _, err := c.SearchRadius(ctx, db.Query{From: "text", Vector: text}, 3); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("before training: %v", err)
	}
	if _, _, err := c.Encode(items[0]); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("encode before training: %v", err)
	}
	if _, err := c.Evaluate(ctx, db.Evaluation{Queries: map[string][][]float32{"text": {text}}, Labels: [][]string{{"a"}}}); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("evaluate before training: %v", err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{})
	for name, tc := range map[string]struct {
		q    db.Query
		want error
		says string
	}{
		"nothing":         {db.Query{}, db.ErrInvalid, "one of"},
		"both forms":      {db.Query{From: "text", Vector: []float32{1}, Sparse: &db.Sparse{}}, db.ErrInvalid, "2 are given"},
		"two things":      {db.Query{Key: "k1", Code: make([]byte, 8)}, db.ErrInvalid, "2 are given"},
		"no from":         {db.Query{Vector: text}, db.ErrInvalid, "modality"},
		"unknown from":    {db.Query{From: "smell", Vector: text}, db.ErrInvalid, "image, text"},
		"unknown to":      {db.Query{From: "text", To: "smell", Vector: text}, db.ErrInvalid, "image, text"},
		"dimension":       {db.Query{From: "image", Vector: text}, db.ErrInvalid, "8 dimensions"},
		"unknown key":     {db.Query{Key: "nobody"}, db.ErrNotFound, "nobody"},
		"code length":     {db.Query{Code: make([]byte, 7)}, db.ErrInvalid, "56 bits"},
		"negative k":      {db.Query{Key: "k1", K: -1}, db.ErrInvalid, "k = -1"},
		"unknown rerank":  {db.Query{Key: "k1", Rerank: 9}, db.ErrInvalid, "rerank"},
		"negative rerank": {db.Query{Key: "k1", Rerank: -1}, db.ErrInvalid, "rerank"},
		"unknown from id": {db.Query{Key: "k1", From: "smell"}, db.ErrInvalid, "smell"},
	} {
		_, err := c.Search(ctx, tc.q)
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.SearchRadius(ctx, db.Query{Key: "k1"}, -1); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("negative radius: %v", err)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Search(cctx, db.Query{Key: "k1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	empty, err := d.CreateCollection(ctx, "empty", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	q := db.Query{Code: []byte{1}}
	for what, err := range map[string]error{
		"search": dbkit.Second(empty.Search(cctx, q)), "radius": dbkit.Second(empty.SearchRadius(cctx, q, 1)), "count": dbkit.Second(empty.CountRadius(cctx, q, 1)),
		"all": dbkit.Second(empty.SearchAll(cctx, []db.Query{q})), "explain": third(empty.Explain(cctx, q, -1)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled, where nothing is to be found: %s: %v", what, err)
		}
	}
	if _, err := c.Put(cctx, &db.Item{Key: "late"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled put: %v", err)
	}
	for r := db.RerankProjection; r <= db.RerankAsymmetric; r++ {
		if got, err := db.ParseRerank(strings.ToUpper(r.String())); got != r || err != nil {
			t.Errorf("rerank %q: %v, %v", r, got, err)
		}
	}
	if _, err := db.ParseRerank("best"); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "asymmetric") {
		t.Errorf("rerank best: %v", err)
	}
	_ = d
}

// Hostile sizes cost no more than what is there.
func TestHugeKAndRadius(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(40, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{})
	r, err := dbkit.FirstWithin(c, db.Query{Key: "k1", K: 1 << 40}, 1<<40)
	if err != nil || len(r.Hits) != 40 || r.Total != 40 {
		t.Errorf("%d hits of %d, %v", len(r.Hits), r.Total, err)
	}
	if r, err = c.Search(ctx, db.Query{Key: "k1", K: 1 << 40}); err != nil || len(r.Hits) != 40 {
		t.Errorf("%v", err)
	}
}

// Items of one class share a code; the nearest of them is the one that the
// query was made from, and only the stored projections can tell.
func TestProjectionsOrderTheItemsOfACode(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(200, synth.Config{Classes: 3, Noise: .5})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64}})
	found := map[db.Rerank]int{}
	for _, it := range items {
		for _, order := range []db.Rerank{db.RerankProjection, db.RerankNone} {
			r, err := c.Search(ctx, db.Query{Vector: it.Vectors["image"], From: "image", K: 10, Rerank: order})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return h.Key == it.Key }) {
				found[order]++
			}
		}
	}
	if found[db.RerankProjection] < 2*found[db.RerankNone] {
		t.Errorf("the item itself is among its first ten hits in %d of 200 searches by projection and %d without",
			found[db.RerankProjection], found[db.RerankNone])
	}
}

func BenchmarkSearch(b *testing.B) {
	_, c := dbkit.OpenPairs(b)
	items := dbkit.Pairs(2000, synth.Config{Classes: 10})
	putAll(b, c, items)
	dbkit.MustTrain(b, c, db.TrainOptions{})
	for _, from := range []string{"image", "text"} {
		for _, order := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric, db.RerankAuto} {
			name := "from=" + from
			if order != db.RerankProjection {
				name += "/" + order.String()
			}
			b.Run(name, func(b *testing.B) {
				q := db.Query{From: from, Vector: items[0].Vectors[from], Rerank: order}
				for b.Loop() {
					if _, err := c.Search(ctx, q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The largest number of items is as good as any.
func TestLargestK(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []byte{1, 2, 7} {
		if _, err := c.Put(ctx, &db.Item{Code: []byte{code}}); err != nil {
			t.Fatal(err)
		}
	}
	for plan := db.PlanAuto; plan <= db.PlanBlockScan; plan++ {
		for _, where := range []string{"", "NOT label = 'x'"} {
			q := db.Query{Code: []byte{0}, K: math.MaxInt, Plan: plan, Where: where}
			one, err := c.Search(ctx, q)
			if err != nil || len(one.Hits) != 3 {
				t.Errorf("plan %v, %q: %+v, %v", plan, where, one, err)
			}
			all, err := c.SearchAll(ctx, []db.Query{q})
			if err != nil || len(all[0].Hits) != 3 {
				t.Errorf("plan %v, %q: all: %v", plan, where, err)
			}
		}
	}
}
