package db

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

func TestSearchRefuses(t *testing.T) {
	d, c := openPairs(t)
	items := pairs(40, synth.Config{})
	putAll(t, c, items)
	text := items[0].Vectors["text"]
	if _, err := c.Search(ctx, Query{From: "text", Vector: text}); !errors.Is(err, ErrNoModel) {
		t.Errorf("before training: %v", err)
	}
	if _, _, err := c.Encode("", items[0]); !errors.Is(err, ErrNoModel) {
		t.Errorf("encode before training: %v", err)
	}
	if _, err := c.Evaluate(ctx, Evaluation{Queries: map[string][][]float32{"text": {text}}, Labels: [][]string{{"a"}}}); !errors.Is(err, ErrNoModel) {
		t.Errorf("evaluate before training: %v", err)
	}
	mustTrain(t, c, TrainOptions{})
	for name, tc := range map[string]struct {
		q    Query
		want error
		says string
	}{
		"nothing":         {Query{}, ErrInvalid, "one of"},
		"both forms":      {Query{From: "text", Vector: []float32{1}, Sparse: &Sparse{}}, ErrInvalid, "2 are given"},
		"two things":      {Query{Key: "k1", Code: make([]byte, 8)}, ErrInvalid, "2 are given"},
		"no from":         {Query{Vector: text}, ErrInvalid, "modality"},
		"unknown from":    {Query{From: "smell", Vector: text}, ErrInvalid, "image, text"},
		"unknown to":      {Query{From: "text", To: "smell", Vector: text}, ErrInvalid, "image, text"},
		"dimension":       {Query{From: "image", Vector: text}, ErrInvalid, "8 dimensions"},
		"unknown key":     {Query{Key: "nobody"}, ErrNotFound, "nobody"},
		"code length":     {Query{Code: make([]byte, 7)}, ErrInvalid, "7 bytes"},
		"negative k":      {Query{Key: "k1", K: -1}, ErrInvalid, "k = -1"},
		"unknown rerank":  {Query{Key: "k1", Rerank: 9}, ErrInvalid, "rerank"},
		"negative rerank": {Query{Key: "k1", Rerank: -1}, ErrInvalid, "rerank"},
		"negative window": {Query{Key: "k1", Window: -1}, ErrInvalid, "window of -1"},
		"unknown from id": {Query{Key: "k1", From: "smell"}, ErrInvalid, "smell"},
	} {
		_, err := c.Search(ctx, tc.q)
		if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.SearchRadius(ctx, Query{Key: "k1"}, -1); !errors.Is(err, ErrInvalid) {
		t.Errorf("negative radius: %v", err)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Search(cctx, Query{Key: "k1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	empty, err := d.CreateCollection(ctx, "empty", Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	q := Query{Code: []byte{1}}
	for what, err := range map[string]error{
		"search": second(empty.Search(cctx, q)), "radius": second(empty.SearchRadius(cctx, q, 1)), "count": second(empty.CountRadius(cctx, q, 1)),
		"all": second(empty.SearchAll(cctx, []Query{q})), "explain": third(empty.Explain(cctx, q, -1)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled, where nothing is to be found: %s: %v", what, err)
		}
	}
	if _, err := c.Put(cctx, &Item{Key: "late"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled put: %v", err)
	}
	for r := RerankProjection; r <= RerankFeatures; r++ {
		if got, err := ParseRerank(strings.ToUpper(r.String())); got != r || err != nil {
			t.Errorf("rerank %q: %v, %v", r, got, err)
		}
	}
	if _, err := ParseRerank("best"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "asymmetric") {
		t.Errorf("rerank best: %v", err)
	}
	_ = d
}

// Hostile sizes cost no more than what is there.
func TestHugeKAndRadius(t *testing.T) {
	_, c := openPairs(t)
	putAll(t, c, pairs(40, synth.Config{}))
	mustTrain(t, c, TrainOptions{})
	r, err := firstWithin(c, Query{Key: "k1", K: 1 << 40}, 1<<40)
	if err != nil || len(r.Hits) != 40 || r.Total != 40 {
		t.Errorf("%d hits of %d, %v", len(r.Hits), r.Total, err)
	}
	if r, err = c.Search(ctx, Query{Key: "k1", K: 1 << 40}); err != nil || len(r.Hits) != 40 {
		t.Errorf("%v", err)
	}
}

// Items of one class share a code; the nearest of them is the one that the
// query was made from, and only the stored projections can tell.
func TestProjectionsOrderTheItemsOfACode(t *testing.T) {
	longTest(t)
	_, c := openPairs(t)
	items := pairs(200, synth.Config{Classes: 3, Noise: .5})
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 64}})
	found := map[Rerank]int{}
	for _, it := range items {
		for _, order := range []Rerank{RerankProjection, RerankNone} {
			r, err := c.Search(ctx, Query{Vector: it.Vectors["image"], From: "image", K: 10, Rerank: order})
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(r.Hits, func(h Hit) bool { return h.Key == it.Key }) {
				found[order]++
			}
		}
	}
	if found[RerankProjection] < 2*found[RerankNone] {
		t.Errorf("the item itself is among its first ten hits in %d of 200 searches by projection and %d without",
			found[RerankProjection], found[RerankNone])
	}
}

func BenchmarkSearch(b *testing.B) {
	_, c := openPairs(b)
	items := pairs(2000, synth.Config{Classes: 10})
	putAll(b, c, items)
	mustTrain(b, c, TrainOptions{})
	for _, from := range []string{"image", "text"} {
		for _, order := range []Rerank{RerankProjection, RerankAsymmetric, RerankFeatures} {
			name := "from=" + from
			if order != RerankProjection {
				name += "/" + order.String()
			}
			b.Run(name, func(b *testing.B) {
				q := Query{From: from, Vector: items[0].Vectors[from], Rerank: order}
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
	d := mustOpen(t, t.TempDir(), nil)
	defer mustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []byte{1, 2, 7} {
		if _, err := c.Put(ctx, &Item{Code: []byte{code}}); err != nil {
			t.Fatal(err)
		}
	}
	for plan := PlanAuto; plan <= PlanBlockScan; plan++ {
		for _, where := range []string{"", "NOT label = 'x'"} {
			q := Query{Code: []byte{0}, K: math.MaxInt, Plan: plan, Where: where}
			one, err := c.Search(ctx, q)
			if err != nil || len(one.Hits) != 3 {
				t.Errorf("plan %v, %q: %+v, %v", plan, where, one, err)
			}
			all, err := c.SearchAll(ctx, []Query{q})
			if err != nil || len(all[0].Hits) != 3 {
				t.Errorf("plan %v, %q: all: %v", plan, where, err)
			}
		}
	}
}
