package db_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

func statsOf(t *testing.T, c *db.Collection) *db.CollectionStats {
	t.Helper()
	s := need(c.Stats())(t)
	return s
}

// What Stats says of the distances of queries is what a linear scan finds.
func TestQueryDistances(t *testing.T) {
	t.Parallel()
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
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 30}})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 30}})
	s := statsOf(t, c)
	failIf(t, s.QueryDistances != nil, "before any search: %+v", s.QueryDistances)
	stored := dbkit.AllItems(t, c)
	nearest := func(q db.Query) int {
		code, _ := need2(c.EncodeQuery(ctx, q))(t)
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
			q.Rerank, q.K = db.RerankNone, len(items)
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
	need(c.SearchAll(ctx, queries))(t)
	want := summaryOf(slices.Clone(distances))
	check := func(what string) {
		t.Helper()
		diff := cmp.Diff(want, statsOf(t, c).QueryDistances, nearly)
		failIf(t, diff != "", "%s: %s", what, diff)
	}
	check("after searches")
	// What is no query of its own, finds nothing, or is of another space does not count.
	x := db.Query{From: "text", Vector: items[3].Vectors["text"], K: 5}
	one := need(c.InSpace(1, 0))(t)
	r := need(one.Search(ctx, x))(t)
	x.After = r.Next
	need(one.Search(ctx, x))(t)
	for _, q := range []db.Query{{Key: "k3"}, {Key: "k3", From: "text"},
		{From: "text", Vector: x.Vector, Where: "label = 'none'"}} {
		need(c.Search(ctx, q))(t)
	}
	check("after others")
	must(t, c.Activate(ctx, 1))
	if s := statsOf(t, c).QueryDistances; s == nil || s.Queries != 1 {
		t.Errorf("in space 1: %+v", s)
	}
	must(t, c.Activate(ctx, 2))
	check("in space 2 again")
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer d.Close()
	s = statsOf(t, dbkit.MustCollection(t, d, "main"))
	failIf(t, s.QueryDistances != nil, "reopened: %+v", s.QueryDistances)
}

// summaryOf sums up distances by sorting them.
func summaryOf(distances []int) *report.Distances {
	n := len(distances)
	if n == 0 {
		return nil
	}
	slices.Sort(distances)
	sum := 0
	for _, d := range distances {
		sum += d
	}
	return &report.Distances{
		Queries: n, Mean: float64(sum) / float64(n),
		P50: distances[int(math.Ceil(float64(n)/2))-1], P90: distances[int(math.Ceil(float64(9*n)/10))-1],
	}
}

// nearly compares floats up to rounding, and all else exactly.
var nearly = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })

func TestDistancesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distances := rapid.SliceOfN(rapid.IntRange(0, 16), 0, 40).Draw(t, "distances")
		counts := make([]int64, 17)
		for _, d := range distances {
			counts[d]++
		}
		equal(t, summaryOf(distances), state.DistancesOf(counts), nearly)
	})
}
