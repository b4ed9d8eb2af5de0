package db_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// plainCosine is the cosine between two dense vectors, as a float32; 0 where one is zero.
func plainCosine(x, y []float32) float32 {
	var xy, xx, yy float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, xx, yy = xy+a*b, xx+a*a, yy+b*b
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(yy)), 1)))
}

// vectorItems makes items of two modalities. Some lack one of them; some vectors are equal, nearly
// equal, zero, or very long or short.
func vectorItems(n, dim int) []*db.Item {
	r := rand.New(rand.NewPCG(1, 2))
	vector := func(dim int) []float32 {
		x := make([]float32, dim)
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		return x
	}
	var items []*db.Item
	for i := range n {
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{"e": vector(dim), "other": vector(3)}, Fields: map[string]any{"year": int64(2000 + i%5)}}
		switch e := it.Vectors["e"]; i % 20 {
		case 3:
			delete(it.Vectors, "e")
		case 5:
			copy(e, items[i-1].Vectors["e"]) // equal
		case 7:
			copy(e, items[i-1].Vectors["e"])
			e[0] += 1e-3
		case 9:
			clear(e)
		case 11:
			for j := range e {
				e[j] *= 1e18
			}
		case 13:
			for j := range e {
				e[j] *= 1e-30
			}
		case 15:
			delete(it.Vectors, "other")
		}
		items = append(items, it)
	}
	return items
}

var vectorSchema = db.Schema{
	Modalities: []db.Modality{{Name: "e", Dim: 48}, {Name: "other", Dim: 3}},
	Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
}

// What an untrained collection cannot answer says what to do.
func TestUntrainedMistakes(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", vectorSchema))(t)
	x := make([]float32, 48)
	x[3] = 1
	if res, err := c.Search(ctx, db.Query{From: "e", Vector: x}); err != nil || len(res.Hits) != 0 {
		t.Errorf("without items: %v, %v", res, err)
	}
	putAll(t, c, vectorItems(40, 48))
	for _, of := range []struct {
		q    db.Query
		want error
	}{
		{db.Query{Code: []byte{1}}, db.ErrNoModel},
		{db.Query{From: "e", Vector: x, Rerank: db.RerankAsymmetric}, db.ErrNoModel},
		{db.Query{From: "e", Vector: make([]float32, 48)}, db.ErrInvalid},
		{db.Query{From: "e", Vector: x[:3]}, db.ErrInvalid},
		{db.Query{From: "nothing", Vector: x}, db.ErrInvalid},
		{db.Query{Key: "k1"}, db.ErrInvalid},
		{db.Query{Key: "k3", From: "e"}, db.ErrInvalid},
		{db.Query{Key: "k9", From: "e"}, db.ErrInvalid},
		{db.Query{Key: "nobody", From: "e"}, db.ErrNotFound},
		{db.Query{From: "e", Vector: x, MinSimilarity: 1.5}, db.ErrInvalid},
		{db.Query{From: "e", Vector: x, Space: 3}, db.ErrNotFound},
		{db.Query{}, db.ErrInvalid},
	} {
		if _, err := c.Search(ctx, of.q); !errors.Is(err, of.want) {
			t.Errorf("%+v: %v", of.q, err)
		}
	}
	if _, err := c.SearchRadius(ctx, db.Query{From: "e", Vector: x}, 4); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("within a radius: %v", err)
	}
	if _, err := c.CountRadius(ctx, db.Query{From: "e", Vector: x}, 4); !errors.Is(err, db.ErrNoModel) {
		t.Errorf("counted within a radius: %v", err)
	}
}

// Few vectors are read where bounds tell them apart; and many that are as near as each other, as all
// are that have nothing in common with a query, take no time that grows with their square.
func TestUntrainedReads(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 64}, {Name: "words", Dim: 1000, Sparse: true}}}))(t)
	r := rand.New(rand.NewPCG(3, 4))
	var items []*db.Item
	const n = 20_000
	for i := range n {
		x := make([]float32, 64)
		for j := range x[:63] {
			x[j] = float32(r.NormFloat64())
		}
		items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": x},
			Sparse: map[string]db.Sparse{"words": {Index: []uint32{uint32(i % 900)}, Value: []float32{1}}}})
	}
	dbkit.PutAll(t, d, c, items)
	need(c.Search(ctx, db.Query{From: "e", Vector: items[0].Vectors["e"]}))(t)
	must(t, d.WaitForIndex(ctx))
	for _, k := range []int{1, 10, 64, 65, 200} {
		x, _, err := c.Explain(ctx, db.Query{From: "e", Vector: items[1].Vectors["e"], K: k}, -1)
		if err != nil || x.Scanned != n || x.Compared < k || x.Compared > 2*k+20 {
			t.Errorf("k = %d: %+v, %v", k, x, err)
		}
	}
	across := make([]float32, 64)
	across[63] = 1
	for _, q := range []db.Query{
		{From: "e", Vector: across}, {From: "words", Sparse: &db.Sparse{Index: []uint32{999}, Value: []float32{1}}},
	} {
		res, err := c.Search(ctx, q)
		if err != nil || len(res.Hits) != 10 || res.Hits[0].Row != 0 || res.Hits[9].Row != 9 || res.Hits[9].Similarity != 0 {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// An answer by vectors does not go on after a training, which has other answers.
func TestCursorOfBeforeTraining(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(60, synth.Config{Classes: 3})
	putAll(t, c, items)
	q := db.Query{From: "text", Vector: items[0].Vectors["text"]}
	page, err := c.Search(ctx, q)
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	q.After = page.Next
	if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "before the training") {
		t.Error(err)
	}
}
