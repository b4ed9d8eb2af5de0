package db_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// An index answers where it is predicted to take less time than all comparisons. Where it takes more, it
// is given up for them, and the answer is exact.
func TestAnIndexIsUsedWhereItPays(t *testing.T) {
	effort.Slow(t)
	was := cells.ExactCost
	cells.ExactCost = 1
	defer func() { cells.ExactCost = was }()

	const dim, n = 64, 5000
	random := rand.New(rand.NewPCG(3, 1))
	// Seven of ten items lie in one direction, the others in the opposite one.
	vector := func(far bool) []float32 {
		x := make([]float32, dim)
		for i := range x {
			x[i] = float32(random.NormFloat64() / 8)
		}
		x[0] += 1
		if far {
			x[0] -= 2
		}
		return x
	}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: dim}}}))(t)
	var items []*db.Item
	for i := range n {
		far := i%10 >= 7
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": vector(far)}, Labels: []string{"near"}}
		if far {
			it.Labels = []string{"far"}
		}
		if i%250 == 0 {
			it.Labels = append(it.Labels, "rare")
		}
		items = append(items, it)
	}
	dbkit.PutAll(t, d, c, items)
	need(c.IndexVectors(ctx, db.IndexOptions{}))(t)
	explained := func(where string, recall float64) (*db.Explain, *db.Result) {
		q := db.Query{From: "e", Vector: items[0].Vectors["e"], K: 3, Where: where, Recall: recall}
		x, r := need2(c.Explain(ctx, q, -1))(t)
		return x, r
	}
	exact := func(what string, x *db.Explain, r *db.Result, where string) {
		t.Helper()
		_, want := explained(where, 1)
		if x.Plan != "vectors" || r.Approximate || x.Recall != 0 || !slices.Equal(keysOf(r.Hits), keysOf(want.Hits)) {
			t.Errorf("%s: plan %s, approximate %v, %v instead of %v", what, x.Plan, r.Approximate, keysOf(r.Hits), keysOf(want.Hits))
		}
	}

	x, r := explained("", .9)
	if x.Plan != "cells" || !r.Approximate || x.Predicted["cells"] == 0 || x.Predicted["cells"] > x.Predicted["vectors"] {
		t.Errorf("without a filter: plan %s, approximate %v, predicted %v", x.Plan, r.Approximate, x.Predicted)
	}
	x, r = explained("label = 'rare'", .9)
	if exact("few items", x, r, "label = 'rare'"); x.Predicted["cells"] < x.Predicted["vectors"] || x.Abandoned {
		t.Errorf("few items: predicted %v, abandoned %v", x.Predicted, x.Abandoned)
	}
	// All that is near is refused: cell after cell is looked into in vain.
	x, r = explained("label = 'far'", .2)
	if exact("items that are far", x, r, "label = 'far'"); !x.Abandoned || x.Probes == 0 {
		t.Errorf("items that are far: predicted %v, abandoned %v after %d cells", x.Predicted, x.Abandoned, x.Probes)
	}
}

// With a least similarity an index finds about as much of what reaches it as is asked for, however few
// that are, and looks into no cell twice.
func TestALeastSimilarityByAnIndex(t *testing.T) {
	dbkit.LongTest(t)
	items := embedded(t, 0, 2000, 48)
	for _, metric := range []db.Metric{db.Cosine, db.L2, db.Dot} {
		d, c := indexedBy(t, vfs.NewMem(), items, metric)
		defer d.Close()
		all := need(c.VectorIndexes())(t)
		for _, least := range []float32{.4, .6, .9} {
			found, of := 0, 0
			for i := 0; i < 2000; i += 100 {
				q := db.Query{From: "e", Vector: items[i].Vectors["e"], K: 1500, MinSimilarity: least, Recall: 1}
				exact := answer(t, c, q)
				q.Recall = .9
				x, r := need2(c.Explain(ctx, q, -1))(t)
				if len(exact.Hits) < q.K && (metric != db.Dot && x.Plan != "cells" || x.Probes > all[0].Cells) {
					t.Errorf("%s, %v: plan %s, %d cells of %d", metric, least, x.Plan, x.Probes, all[0].Cells)
				}
				found, of = found+len(r.Hits), of+len(exact.Hits)
			}
			if of < 20 || float64(found) < .9*float64(of) {
				t.Errorf("%s, at least %v: %d of %d", metric, least, found, of)
			}
		}
	}
}

// Where vectors cannot be in memory each comparison reads one: then an index pays earlier.
func TestAnIndexPaysEarlierWithoutMemory(t *testing.T) {
	was := cells.ExactCost
	cells.ExactCost = 125_000
	defer func() { cells.ExactCost = was }()
	items := embedded(t, 0, 2000, 48)
	fs := vfs.NewMem()
	d, c := indexed(t, fs, items)
	q := db.Query{From: "e", Vector: items[0].Vectors["e"], K: 3, Recall: .9}
	plan := func(want string) {
		t.Helper()
		if x, _, err := c.Explain(ctx, q, -1); err != nil || x.Plan != want {
			t.Errorf("plan %s, %v; want %s", x.Plan, err, want)
		}
	}
	plan("vectors")
	must(t, d.Close())
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: -1})
	defer d.Close()
	c = need(d.Collection("main"))(t)
	plan("cells")
}

// A search sees what was written before, though the rows of filters are kept.
func TestFiltersFollowWrites(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", indexedSchema))(t)
	x := make([]float32, 48)
	x[0] = 1
	put := func(key string, year int64, labels ...string) {
		t.Helper()
		it := &db.Item{Key: key, Vectors: map[string][]float32{"e": x}, Labels: labels, Fields: map[string]any{"year": year}}
		need(c.Put(ctx, it))(t)
	}
	check := func(where string, args []any, want ...string) {
		t.Helper()
		for range 2 { // the second finds the rows of the first
			r := need(c.Search(ctx, db.Query{From: "e", Vector: x, K: 10, Where: where, Args: args}))(t)
			if got := keysOf(r.Hits); !slices.Equal(got, want) {
				t.Errorf("%s %v: %v, want %v", where, args, got, want)
			}
		}
	}
	put("a", 2000, "red")
	put("b", 2001, "red")
	check("label = 'red'", nil, "a", "b")
	check("year = ?", []any{2000}, "a")
	check("year = ?", []any{2001}, "b")
	put("c", 2001, "red")
	check("label = 'red'", nil, "a", "b", "c")
	check("year = ?", []any{2001}, "b", "c")
	put("b", 2000, "blue")
	check("label = 'red'", nil, "a", "c")
	check("year = ?", []any{int64(2000)}, "a", "b")
	need(c.Delete(ctx, "a"))(t)
	check("label = 'red'", nil, "c")
	check("year IN (?)", []any{[]int{2000, 2001}}, "b", "c")
	r, err := c.Search(ctx, db.Query{From: "e", Key: "c", K: 10, Where: "label = 'red'", ExcludeSelf: true})
	if err != nil || len(r.Hits) != 0 {
		t.Errorf("without itself: %v, %v", r, err)
	}
	check("label = 'red'", nil, "c")
}
