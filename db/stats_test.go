package db_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

func statsOf(t *testing.T, c *db.Collection) *db.CollectionStats {
	t.Helper()
	s, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// balanceOf computes the balance of codes from the definition.
func balanceOf(codes [][]byte) *db.Balance {
	out := &db.Balance{}
	q := 8 * len(codes[0])
	for j := range q {
		sum := 0.0
		for _, code := range codes {
			sum += float64(int(code[j/8]>>(j%8)&1)*2 - 1)
		}
		if math.Abs(sum) == float64(len(codes)) {
			out.ConstantBits++
		}
		out.BitBalance += math.Abs(sum) / float64(len(codes)) / float64(q)
	}
	return out
}

func TestBalanceOfStoredCodes(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	if s := statsOf(t, c); s.Balance != nil || s.Spaces != 0 {
		t.Errorf("before training: %+v", s)
	}
	putAll(t, c, dbkit.ViewItems(120, 3))
	if s := statsOf(t, c); s.Balance != nil {
		t.Errorf("before training: %+v", s)
	}
	for _, opt := range []model.Options{{Bits: 32, Anchors: 30}, dbkit.TinyTraining(1).Options} {
		dbkit.MustTrain(t, c, db.TrainOptions{Options: opt})
		var codes [][]byte
		for _, it := range dbkit.AllItems(t, c) {
			if it.Code != nil {
				codes = append(codes, it.Code)
			}
		}
		if diff := cmp.Diff(balanceOf(codes), statsOf(t, c).Balance, nearly); diff != "" {
			t.Error(diff)
		}
	}
	cold, release := coldCollection(d, c)
	defer release()
	if s := statsOf(t, cold); s.Balance != nil {
		t.Errorf("of codes that are not in memory: %+v", s.Balance)
	}
}

func TestBalanceOfASample(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 32})
	if err != nil {
		t.Fatal(err)
	}
	var items []*db.Item
	for i, code := range dbkit.RandomCodes(500, 32, 1) {
		code[0] |= 1 // one bit is constant
		items = append(items, &db.Item{Key: string(rune('a'+i/26)) + string(rune('a'+i%26)), Code: code})
	}
	putAll(t, c, items)
	if _, err := c.Delete(ctx, items[0].Key, items[7].Key); err != nil {
		t.Fatal(err)
	}
	items = append(items[1:7], items[8:]...)
	err = db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		var sampled, all [][]byte
		for i := range 100 {
			sampled = append(sampled, items[i*len(items)/100].Code)
		}
		for _, it := range items {
			all = append(all, it.Code)
		}
		want := balanceOf(sampled)
		want.Sampled = 100
		if diff := cmp.Diff(want, learn.BalanceIn(cv, 100), nearly); diff != "" || want.ConstantBits != 1 {
			t.Errorf("of 100: %s", diff)
		}
		if diff := cmp.Diff(balanceOf(all), learn.BalanceIn(cv, len(items)), nearly); diff != "" {
			t.Errorf("of all: %s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What Stats says of the distances of queries is what a linear scan finds.
func TestQueryDistances(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(200, synth.Config{Noise: 3})
	for i, it := range items {
		if i%2 == 0 {
			it.Labels = nil
		}
		if i%5 == 0 {
			delete(it.Vectors, "image")
		}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 32, Anchors: 30}})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: model.Options{Bits: 64, Anchors: 30}})
	if s := statsOf(t, c); s.QueryDistances != nil {
		t.Errorf("before any search: %+v", s.QueryDistances)
	}
	stored := dbkit.AllItems(t, c)
	nearest := func(q db.Query) int {
		code, _, err := c.EncodeQuery(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		best := math.MaxInt
		for _, it := range stored {
			if q.To == "" || it.Vectors[q.To] != nil {
				best = min(best, hamming(code, it.Code))
			}
		}
		return best
	}
	var queries []db.Query
	var distances []int
	for i, it := range dbkit.Pairs(60, synth.Config{Noise: 3, Seed: 9}) {
		q := db.Query{From: "text", To: "image", Vector: it.Vectors["text"], K: 1 + i%7}
		switch i % 4 {
		case 1:
			q = db.Query{From: "image", Vector: it.Vectors["image"]}
		case 2:
			q.Rerank, q.K = db.RerankFeatures, len(items)
		case 3:
			q.Rerank, q.K = db.RerankAsymmetric, len(items)
		}
		distances = append(distances, nearest(q))
		if i >= 40 {
			queries = append(queries, q)
		} else if _, err := c.Search(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.SearchAll(ctx, queries); err != nil {
		t.Fatal(err)
	}
	want := summaryOf(slices.Clone(distances))
	check := func(what string) {
		t.Helper()
		if diff := cmp.Diff(want, statsOf(t, c).QueryDistances, nearly); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("after searches")
	// What is no query of its own, finds nothing, or is of another space does not count.
	x := db.Query{From: "text", Vector: items[3].Vectors["text"], K: 5, Space: 1}
	r, err := c.Search(ctx, x)
	if err != nil {
		t.Fatal(err)
	}
	x.After = r.Next
	for _, q := range []db.Query{x, {Key: "k3"}, {Key: "k3", From: "text"}, {From: "text", Vector: x.Vector, Where: "label = 'none'"}} {
		if _, err := c.Search(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	check("after others")
	if err := c.Activate(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if s := statsOf(t, c).QueryDistances; s == nil || s.Queries != 1 {
		t.Errorf("in space 1: %+v", s)
	}
	if err := c.Activate(ctx, 2); err != nil {
		t.Fatal(err)
	}
	check("in space 2 again")
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer d.Close()
	if s := statsOf(t, dbkit.MustCollection(t, d, "main")); s.QueryDistances != nil {
		t.Errorf("reopened: %+v", s.QueryDistances)
	}
}
