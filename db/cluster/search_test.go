package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// importAll stores items by batches of the database of package api.
func importAll(t testing.TB, c *cluster.Collection, items []*db.Item) {
	t.Helper()
	d := c.Database()
	to, err := d.Collection(t.Context(), c.Name())
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	for i, it := range items {
		if err = b.Put(to, it); err == nil && (b.Full() || i == len(items)-1) {
			err = b.Commit(t.Context())
			b = d.NewBatch()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// pair is a collection of a cluster and the same one in a single database.
type pair struct {
	t    *testing.T
	many *cluster.Collection
	one  *db.Collection
	off  float64 // by so much scores may differ, which models are to blame for that differ in their last bits
}

// compare searches both, page by page to the end, and wants the same answer: in every place the same
// distance, score and similarity, and the same key unless others are as near.
func (p pair) compare(what string, q db.Query, radius int) {
	p.t.Helper()
	if radius >= 0 {
		q.Include |= db.IncludeDistances
	}
	single := func(q db.Query) (*db.Result, error) {
		if radius < 0 {
			return p.one.Search(p.t.Context(), q)
		}
		runs, err := p.one.SearchRadius(p.t.Context(), q, radius)
		if err != nil {
			return nil, err
		}
		defer runs.Close()
		return runs.First(p.t.Context(), q.K)
	}
	all := q
	all.K = 100_000
	want, err := single(all)
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	var got []db.Hit
	seen := map[string]bool{}
	for cq := (cluster.Query{Query: q}); ; {
		var res *cluster.Result
		if radius < 0 {
			res, err = p.many.Search(p.t.Context(), cq)
		} else {
			res, err = p.many.SearchRadius(p.t.Context(), cq, radius)
		}
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
		if radius >= 0 && res.Total != want.Total && cq.After == "" {
			p.t.Errorf("%s: %d in all, want %d", what, res.Total, want.Total)
		}
		if !slices.Equal(res.Distances, want.Distances) {
			p.t.Errorf("%s: distances %v, want %v", what, res.Distances, want.Distances)
		}
		got = append(got, res.Hits...)
		if cq.After = res.Next; res.Next == "" || len(got) > len(want.Hits) {
			break
		}
	}
	if len(got) != len(want.Hits) {
		p.t.Fatalf("%s: %d hits, want %d", what, len(got), len(want.Hits))
	}
	near := func(a, b float64) bool { return a == b || a != a && b != b || math.Abs(a-b) <= p.off }
	for i, h := range got {
		w := want.Hits[i]
		if seen[h.Key] {
			p.t.Fatalf("%s: %q twice", what, h.Key)
		}
		seen[h.Key] = true
		if h.Distance != w.Distance || !near(h.Score, w.Score) ||
			!near(float64(h.Similarity), float64(w.Similarity)) {
			p.t.Fatalf("%s: hit %d is %+v, want %+v", what, i, h, w)
		}
		alone := math.NaN()
		for _, o := range want.Hits {
			if o.Distance == w.Distance && near(o.Score, w.Score) &&
				near(float64(o.Similarity), float64(w.Similarity)) && o.Key != w.Key {
				alone = 0
			}
		}
		if alone != alone && h.Key != w.Key {
			p.t.Fatalf("%s: hit %d is %q, want %q", what, i, h.Key, w.Key)
		}
	}
}

// A cluster answers as one database with the same items does: by codes, without a model by vectors, and with
// a model that it is given while searches go on.
func TestAnswersAreThoseOfOneDatabase(t *testing.T) {
	h := build(t, 3, 2, 4, 1)
	c := h.connect()
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)

	codes, one := codesOf(t, c),
		mustCreate(t, d, "codes", db.Schema{Bits: 16,
			Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}}})
	var items []*db.Item
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 900 {
		items = append(items, &db.Item{Key: fmt.Sprint("c", i),
			Code: []byte{byte(r.IntN(256)), byte(r.IntN(8))}, Labels: []string{fmt.Sprint("l", i%7)},
			Fields: map[string]any{"year": int64(i % 5)}})
	}
	importAll(t, codes, items)
	dbkit.PutAll(t, d, one, items)
	p := pair{t, codes, one, 0}
	p.compare("by code", db.Query{Code: []byte{3, 4}, K: 40}, -1)
	p.compare("by code, where", db.Query{Code: []byte{3, 4}, K: 40, Where: "year IN (?)",
		Args: []any{[]int{1, 3}}}, -1)
	p.compare("by key", db.Query{Key: "c17", K: 30}, -1)
	p.compare("by key, without itself", db.Query{Key: "c17", K: 30, ExcludeSelf: true}, -1)
	p.compare("within", db.Query{Code: []byte{3, 4}, K: 40}, 4)
	if n, err := codes.Count(t.Context(), "year = ? AND label = 'l2'", 2); err != nil || n == 0 ||
		n != countIn(t, one, "year = 2 AND label = 'l2'") {
		t.Error(n, err)
	}
	for _, by := range []string{"label", "year"} {
		f, err := codes.Facets(t.Context(), db.FacetQuery{By: by, Limit: 3})
		want, werr := one.Facets(t.Context(), db.FacetQuery{By: by, Limit: 3})
		if err != nil || werr != nil || fmt.Sprint(*f) != fmt.Sprint(*want) {
			t.Errorf("%+v, want %+v, %v", f, want, errors.Join(err, werr))
		}
	}
	if labels, err := codes.Labels(t.Context()); err != nil || len(labels) != 7 {
		t.Error(labels, err)
	}

	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	single := mustCreate(t, d, "pairs", dbkit.PairsSchema)
	learned := dbkit.Pairs(400, synth.Config{Seed: 5, Missing: .2})
	importAll(t, pairs, learned)
	dbkit.PutAll(t, d, single, learned)
	p = pair{t, pairs, single, 0}
	image, text := learned[3].Vectors["image"], learned[1].Vectors["text"]
	p.compare("by vectors", db.Query{From: "image", Vector: image, K: 60}, -1)

	// Searches go on while every shard gets the model, one after the other.
	var file bytes.Buffer
	dbkit.MustTrain(t, single, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20, Seed: 1}})
	if err := single.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	beside(t, func(ctx context.Context) error {
		_, err := pairs.Search(ctx,
			cluster.Query{Query: db.Query{From: "image", Vector: image, To: "text", K: 5}})
		return err
	}, func() {
		if _, err := pairs.ImportModel(t.Context(), bytes.NewReader(file.Bytes()), true); err != nil {
			t.Error(err)
		}
	})
	for _, rerank := range []db.Rerank{db.RerankProjection, db.RerankNone, db.RerankAsymmetric} {
		p.compare(rerank.String(), db.Query{From: "image", Vector: image, To: "text", K: 50, Rerank: rerank},
			-1)
		p.compare(rerank.String()+" within", db.Query{From: "text", Vector: text, K: 50, Rerank: rerank}, 6)
	}
	p.compare("by key", db.Query{Key: learned[1].Key, From: "text", To: "image", K: 50,
		Rerank: db.RerankProjection}, -1)
	if res, err := pairs.Search(t.Context(),
		cluster.Query{Query: db.Query{From: "image", Vector: image,
			Facets: []string{"label"}}}); err != nil || len(res.Facets) != 1 || res.Hits[0].Item != nil {
		t.Error(res, err)
	}

	// Another model: it becomes the active one, shard after shard, and no search fails.
	file.Reset()
	dbkit.MustTrain(t, single, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 2},
		Activate: true})
	if err := single.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	beside(t, func(ctx context.Context) error {
		_, err := pairs.Search(ctx, cluster.Query{Query: db.Query{From: "image", Vector: image, K: 5}})
		return err
	}, func() {
		if _, err := pairs.ImportModel(t.Context(), bytes.NewReader(file.Bytes()), false); err != nil {
			t.Error(err)
		}
		for range 5 {
			for _, space := range []db.Space{2, 1, 2} {
				if err := pairs.Activate(t.Context(), space); err != nil {
					t.Error(err)
				}
			}
		}
	})
	p.compare("by the other model", db.Query{From: "image", Vector: image, K: 50,
		Rerank: db.RerankProjection}, -1)
	if err := pairs.DropSpace(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := pairs.DropSpace(t.Context(), 1); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
}

// beside calls search, again and again in two goroutines, while f runs, and wants no error.
func beside(t *testing.T, search func(context.Context) error, f func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var n atomic.Int64
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := search(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("search %d beside: %v", n.Load(), err)
					return
				}
				n.Add(1)
			}
		})
	}
	f()
	stop()
	all.Wait()
	t.Logf("%d searches beside", n.Load())
}

func mustCreate(t *testing.T, d *db.DB, name string, s db.Schema) *db.Collection {
	t.Helper()
	c, err := d.CreateCollection(t.Context(), name, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func countIn(t *testing.T, c *db.Collection, where string) int {
	t.Helper()
	n, err := c.Count(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A shard that is gone is an error that names it, or is missing from a partial answer, and comes later.
func TestPartialAnswers(t *testing.T) {
	h := build(t, 1, 2, 2, 1)
	c := h.connect()
	codes := codesOf(t, c)
	var items []*db.Item
	for i := range 100 {
		items = append(items, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 0}})
	}
	importAll(t, codes, items)
	h.leave("n1")
	gone := 1 // the shard of n1
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	q := cluster.Query{Query: db.Query{Code: []byte{0, 0}, K: 10}}
	var silent *cluster.ShardError
	if _, err := codes.Search(ctx, q); !errors.As(err, &silent) || silent.Shard != gone {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q.AllowPartial = true
	res, err := codes.Search(ctx, q)
	if err != nil || !slices.Equal(res.Missing, []int{gone}) || len(res.Hits) != 10 {
		t.Fatal(res, err)
	}
	h.open("n1")
	seen := map[string]bool{}
	for {
		for _, hit := range res.Hits {
			if seen[hit.Key] {
				t.Errorf("%q twice", hit.Key)
			}
			seen[hit.Key] = true
		}
		if res.Next == "" {
			break
		}
		q.After = res.Next
		if res, err = codes.Search(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 items", len(seen))
	}
}
