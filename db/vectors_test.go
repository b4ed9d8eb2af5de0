package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
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

// A collection that is not trained is answered by its vectors, exactly: as a plain computation over
// all items has it, with filters, cut-offs and pages, whether vectors are in memory or not, and after
// writes.
func TestUntrainedSearch(t *testing.T) {
	dbkit.LongTest(t)
	n := effort.Of(600, 200)
	items := vectorItems(n+n/6, 48)
	origin := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: origin})
	c, err := d.CreateCollection(ctx, "main", vectorSchema)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, c, items[:n])
	dbkit.MustClose(t, d)
	for _, budget := range []int64{-1, 1, int64(25 * n), 0} {
		fs := vfs.NewMem()
		if _, err := vfs.Clone(origin, fs, "db", "db"); err != nil {
			t.Fatal(err)
		}
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget})
		c := dbkit.MustCollection(t, d, "main")
		now := map[string]*db.Item{}
		for _, it := range items[:n] {
			now[it.Key] = it
		}
		checkUntrained(t, c, now)
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		checkUntrained(t, c, now)
		for i, it := range items[n:] {
			if _, err := c.Put(ctx, it); err != nil {
				t.Fatal(err)
			}
			now[it.Key] = it
			changed := *items[(i*7)%n]
			changed.Vectors = items[(i*11)%n].Vectors
			if _, err := c.Put(ctx, &changed); err != nil {
				t.Fatal(err)
			}
			now[changed.Key] = &changed
			if gone := items[(i*13)%n].Key; i%4 == 0 {
				if _, err := c.Delete(ctx, gone); err != nil {
					t.Fatal(err)
				}
				delete(now, gone)
			}
		}
		checkUntrained(t, c, now)
		dbkit.MustClose(t, d)
	}
}

// checkUntrained compares answers with those of a plain computation over items.
func checkUntrained(t *testing.T, c *db.Collection, items map[string]*db.Item) {
	t.Helper()
	rows := map[string]uint32{}
	whole, err := c.Search(ctx, db.Query{From: "other", Vector: []float32{1, 2, 3}, K: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range whole.Hits {
		rows[h.Key] = h.Row
	}
	if whole, err = c.Search(ctx, db.Query{From: "e", Vector: items["k1"].Vectors["e"], K: 10_000}); err != nil {
		t.Fatal(err)
	}
	for _, h := range whole.Hits {
		rows[h.Key] = h.Row
	}
	for i, key := range []string{"k1", "k4", "k6", "k11", "k50", "k64"} {
		x := items[key].Vectors["e"]
		for _, q := range []db.Query{
			{From: "e", Vector: x}, {From: "e", Key: key}, {From: "e", Key: key, ExcludeSelf: true}, {From: "e", To: "other", Vector: x},
			{From: "e", Vector: x, Where: "year = 2001"}, {From: "e", Vector: x, MinSimilarity: .2}, {From: "e", Vector: x, MinSimilarity: -.1, Where: "year > 2001"},
			{From: "other", Vector: items["k1"].Vectors["other"], To: "e"},
		} {
			var want []db.Hit
			for key, it := range items {
				y, has := it.Vectors[q.From]
				_, is := it.Vectors[cmp.Or(q.To, q.From)]
				year := it.Fields["year"].(int64)
				if !has || !is || q.ExcludeSelf && key == q.Key || q.Where == "year = 2001" && year != 2001 || q.Where == "year > 2001" && year <= 2001 {
					continue
				}
				from := q.Vector
				if from == nil {
					from = x
				}
				if s := plainCosine(from, y); q.MinSimilarity == 0 || s >= q.MinSimilarity {
					want = append(want, db.Hit{Key: key, Row: rows[key], Distance: -1, Similarity: s})
				}
			}
			slices.SortFunc(want, func(a, b db.Hit) int {
				return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Row, b.Row))
			})
			same := func(what string, got []db.Hit, n int) {
				t.Helper()
				if len(got) != min(n, len(want)) {
					t.Fatalf("%+v: %s: %d hits, want %d of %d", q, what, len(got), n, len(want))
				}
				for i, h := range got {
					if w := want[i]; h.Key != w.Key || h.Row != w.Row || h.Similarity != w.Similarity || h.Distance != -1 || !math.IsNaN(h.Score) {
						t.Fatalf("%+v: %s: hit %d is %+v, want %+v", q, what, i, h, w)
					}
				}
			}
			for _, k := range []int{1, 7, 10_000} {
				q.K = k
				res, err := c.Search(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				same("search", res.Hits, k)
				if (res.Next != "") != (len(want) > k) {
					t.Fatalf("%+v: the cursor is %q, of %d hits", q, res.Next, len(want))
				}
			}
			var paged []db.Hit
			for q.K = 9; ; q.K = 100 + i {
				page, err := c.Search(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				paged = append(paged, page.Hits...)
				if q.After = page.Next; q.After == "" || len(paged) > len(want) {
					break
				}
			}
			same("pages", paged, len(want))
			q.K = 5
			near, err := dbkit.Collect(c.Neighbors(ctx, q))
			if err != nil {
				t.Fatal(err)
			}
			same("neighbours", near, len(want))
			all, err := c.SearchAll(ctx, []db.Query{q, q})
			if err != nil {
				t.Fatal(err)
			}
			same("all", all[1].Hits, 5)
			x, res, err := c.Explain(ctx, q, -1)
			if err != nil || x.Plan != "vectors" || x.Hits != len(res.Hits) || q.MinSimilarity == 0 && x.Scanned != len(want) {
				t.Fatalf("%+v: %+v, %v", q, x, err)
			}
			same("explained", res.Hits, 5)
		}
	}
}

// What an untrained collection cannot answer says what to do.
func TestUntrainedMistakes(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", vectorSchema)
	if err != nil {
		t.Fatal(err)
	}
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
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 64}, {Name: "words", Dim: 1000, Sparse: true}}})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := c.Search(ctx, db.Query{From: "e", Vector: items[0].Vectors["e"]}); err != nil {
		t.Fatal(err)
	}
	if err := d.WaitForIndex(ctx); err != nil {
		t.Fatal(err)
	}
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
