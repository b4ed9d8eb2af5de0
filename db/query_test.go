package db_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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
	empty := need(d.CreateCollection(ctx, "empty", db.Schema{Bits: 8}))(t)
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
					need(c.Search(ctx, q))(b)
				}
			})
		}
	}
}
