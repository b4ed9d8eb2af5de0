package db_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// cosine returns the cosine between two projections, 0 if one is nil.
func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range min(len(a), len(b)) {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// The similarity of a hit is the cosine between the projection of the query and the sum of those
// of the item's vectors, and decides the order of the items of one code, whatever k is.
func TestSimilarityIsTheCosineOfProjections(t *testing.T) {
	dbkit.LongTest(t)
	c, items := openMixed(t, 16)
	projections := map[string][]float64{}
	for it, err := range c.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		sum := make([]float64, 16)
		for name, x := range it.Vectors {
			_, z, err := c.EncodeQuery(ctx, db.Query{From: name, Vector: x})
			if err != nil {
				t.Fatal(err)
			}
			for j := range sum {
				sum[j] += z[j]
			}
		}
		projections[it.Key] = sum
	}
	for _, order := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric} {
		for _, of := range items[:12] {
			q := db.Query{From: "image", Vector: of.Vectors["image"], K: len(items), Rerank: order}
			_, z, err := c.EncodeQuery(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			all, err := c.Search(ctx, q)
			if err != nil || len(all.Hits) != len(items) {
				t.Fatal(len(all.Hits), err)
			}
			decided := 0
			for i, h := range all.Hits {
				if want := cosine(z, projections[h.Key]); math.Abs(float64(h.Similarity)-want) > .01 {
					t.Errorf("%v: hit %q has similarity %g, the cosine is %g", order, h.Key, h.Similarity, want)
				}
				if i == 0 {
					continue
				}
				if last := all.Hits[i-1]; last.Distance == h.Distance && last.Score == h.Score {
					decided++
					if last.Similarity < h.Similarity || last.Similarity == h.Similarity && last.Row > h.Row {
						t.Errorf("%v: %+v comes before %+v", order, last, h)
					}
				}
			}
			if decided == 0 {
				t.Fatal("no two items share a code")
			}
			for _, k := range []int{1, 3, 70} {
				q.K = k
				if few, err := c.Search(ctx, q); err != nil || !slices.Equal(few.Hits, all.Hits[:k]) {
					t.Errorf("%v: the first %d are not the first of all, %v", order, k, err)
				}
			}
			// A least similarity leaves out what has less, and nothing else.
			q.K = len(items)
			for _, least := range []float32{-.2, 1e-9, .3, .9, 1} {
				q.MinSimilarity = least
				var want []db.Hit
				for _, h := range all.Hits {
					if h.Similarity >= least {
						want = append(want, h)
					}
				}
				res, err := c.Search(ctx, q)
				if err != nil || !slices.Equal(res.Hits, want) {
					t.Errorf("%v: %d hits with similarity %g, want %d, %v", order, len(res.Hits), least, len(want), err)
				}
				within := 0
				for _, h := range want {
					if h.Distance <= 5 {
						within++
					}
				}
				if n, err := c.CountRadius(ctx, q, 5); err != nil || n != within {
					t.Errorf("%v: %d items within 5 with similarity %g, want %d, %v", order, n, least, within, err)
				}
				runs, err := c.SearchRadius(ctx, q, 5)
				if err != nil || runs.Total() != within {
					t.Fatal(err, runs.Total(), within)
				}
				rows, sum := 0, 0
				for r, err := range runs.All(ctx) {
					if err != nil {
						t.Fatal(err)
					}
					rows += len(r.Rows)
				}
				counts, err := runs.Distances(ctx)
				for _, n := range counts {
					sum += n
				}
				if hits, err2 := dbkit.Collect(runs.Hits(ctx)); err != nil || err2 != nil || rows != within || sum != within || len(hits) != within {
					t.Errorf("%v: %d rows, %d counted, %d hits, want %d: %v, %v", order, rows, sum, len(hits), within, err, err2)
				}
				if err := runs.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// In the order auto the items of a code come by the cosine of their vectors, where all items have one.
func TestVectorsDecideWithinCodes(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(240, synth.Config{Classes: 4, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	for range 2 { // before the vectors are in memory, perhaps, and when they are
		for _, of := range items[:20] {
			x := of.Vectors["text"]
			q := db.Query{From: "text", Vector: x, K: len(items), Rerank: db.RerankProjection, Include: db.IncludeVectors}
			plain, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			q.Rerank = db.RerankAuto
			got, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			for i, h := range got.Hits {
				if want := cosine32(x, h.Item.Vectors["text"]); math.Abs(float64(h.Similarity)-want) > .01 {
					t.Errorf("%q has similarity %g, want %g", h.Key, h.Similarity, want)
				}
				if p := plain.Hits[i]; p.Distance != h.Distance || p.Score != h.Score {
					t.Fatalf("hit %d is at %d, %g, not %d, %g", i, h.Distance, h.Score, p.Distance, p.Score)
				}
				if i == 0 || got.Hits[i-1].Distance != h.Distance || got.Hits[i-1].Score != h.Score {
					continue
				}
				if last := got.Hits[i-1]; last.Similarity < h.Similarity {
					t.Errorf("%+v comes before %+v", last, h)
				}
			}
		}
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// cosine32 is cosine of vectors.
func cosine32(a, b []float32) float64 {
	wide := func(x []float32) []float64 {
		z := make([]float64, len(x))
		for i, v := range x {
			z[i] = float64(v)
		}
		return z
	}
	return cosine(wide(a), wide(b))
}

// What has no similarity says so, and cannot be limited by it.
func TestWhereThereIsNoSimilarity(t *testing.T) {
	c, items := openMixed(t, 32)
	code, _, err := c.EncodeQuery(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"]})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []db.Query{
		{Code: code},
		{Key: "k1"},
		{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankNone},
	} {
		res, err := c.Search(ctx, q)
		if err != nil || len(res.Hits) == 0 {
			t.Fatal(err)
		}
		for _, h := range res.Hits {
			if !math.IsNaN(float64(h.Similarity)) {
				t.Errorf("%+v", h)
			}
		}
		q.MinSimilarity = .5
		if _, err := c.Search(ctx, q); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("limited: %v", err)
		}
	}
	for _, least := range []float32{-1.1, 1.1, float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := c.Search(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankProjection, MinSimilarity: least}); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("a least similarity of %g: %v", least, err)
		}
	}
}

// Answers are the same, to the last bit, however much of the projections is in memory: before
// they are loaded, with all, a part and none of them, and after writes, in every order, with
// filters, targets and cursors.
func TestAnswersDoNotDependOnTheCacheOfProjections(t *testing.T) {
	dbkit.LongTest(t)
	n := effort.Of(1500, 300)
	items := dbkit.Pairs(n+n/5, synth.Config{Classes: 4, Noise: 2, Seed: 3})
	for i, it := range items { // all have an image, so that vectors decide in the order auto
		if i%2 == 1 {
			it.Labels = nil
		}
		if i%7 == 3 {
			delete(it.Vectors, "text")
		}
		it.Fields = map[string]any{"year": 2000 + i%3}
	}
	origin := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: origin})
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, c, items[:n])
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustClose(t, d)

	var want [][][]db.Hit // by stage: what the first budget has answered
	part := int64(26 * n) // of what they take
	for i, budget := range []int64{-1, 1, part, 0} {
		fs := vfs.NewMem()
		if _, err := vfs.Clone(origin, fs, "db", "db"); err != nil {
			t.Fatal(err)
		}
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget})
		c := dbkit.MustCollection(t, d, "main")
		var got [][][]db.Hit
		ask := func() { got = append(got, everyOrder(t, c, items)) }
		ask() // while they are loaded, perhaps
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		ask()
		bytes := dbkit.MustStats(t, d).Collections[0].RerankBytes
		switch {
		case budget == 0 && bytes < int64(30*n), budget == part && (bytes < part/4 || bytes > part), (budget == -1 || budget == 1) && bytes != 0:
			t.Errorf("budget %d: projections take %d bytes", budget, bytes)
		}
		for j, it := range items[n:] { // new items, changed ones, deleted ones
			if _, err := c.Put(ctx, it); err != nil {
				t.Fatal(err)
			}
			changed := *items[(j*7)%n]
			changed.Vectors = items[(j*11)%n].Vectors
			if _, err := c.Put(ctx, &changed); err != nil {
				t.Fatal(err)
			}
			if j%5 == 0 {
				if _, err := c.Delete(ctx, items[(j*13)%n].Key); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask()
		checkSpaces(t, d)
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		ask()
		checkSpaces(t, d)
		dbkit.MustClose(t, d)
		if i == 0 {
			want = got
			continue
		}
		for stage := range want {
			for i, hits := range want[stage] {
				if !sameHits(hits, got[stage][i]) {
					t.Fatalf("budget %d, stage %d, query %d: %s", budget, stage, i, cmp.Diff(hits, got[stage][i], cmpopts.EquateNaNs()))
				}
			}
		}
	}
}

// sameHits compares hits to the last bit, without their items.
func sameHits(a, b []db.Hit) bool {
	return oracle.SameHits(a, b) && slices.EqualFunc(a, b, func(x, y db.Hit) bool {
		return math.Float32bits(x.Similarity) == math.Float32bits(y.Similarity)
	})
}

// everyOrder returns the hits of many queries, read page by page, which is what they are in one
// piece.
func everyOrder(t *testing.T, c *db.Collection, items []*db.Item) (all [][]db.Hit) {
	t.Helper()
	for i := range effort.Of(6, 2) {
		of := items[i*37]
		for _, q := range []db.Query{
			{From: "image", To: "text"},
			{From: "image", To: "text", Rerank: db.RerankProjection},
			{From: "text", To: "image", Rerank: db.RerankAsymmetric},
			{From: "image", To: "image", Where: "year = 2001", Rerank: db.RerankProjection},
			{From: "text", To: "image", Key: "k20", Rerank: db.RerankProjection, MinSimilarity: .4},
			{From: "image", To: "text", Key: "k21", ExcludeSelf: true, Rerank: db.RerankAsymmetric},
			{From: "image", To: "text", Key: "k22"},
		} {
			if q.Key == "" {
				if q.Vector = of.Vectors[q.From]; q.Vector == nil {
					continue
				}
			}
			q.K = 1 << 20
			whole, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			var paged []db.Hit
			for q.K = 9; ; q.K = 400 {
				page, err := c.Search(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				paged = append(paged, page.Hits...)
				if q.After = page.Next; q.After == "" || len(paged) > len(whole.Hits) {
					break
				}
			}
			if !sameHits(whole.Hits, paged) {
				t.Fatalf("query %+v: pages differ: %s", q, cmp.Diff(whole.Hits, paged, cmpopts.EquateNaNs()))
			}
			all = append(all, whole.Hits)
		}
	}
	return all
}

// Parts of items come with their hits as of the state that is searched.
func TestInclude(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{Classes: 4})
	for i, it := range items {
		it.Fields = map[string]any{"year": int64(1990 + i), "title": fmt.Sprint("title ", i)}
		it.Payload = []byte{byte(i)}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	snap, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	then, err := snap.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	changed := *items[3]
	changed.Fields, changed.Labels = map[string]any{"year": int64(3000)}, []string{"other"}
	if _, err := c.Put(ctx, &changed); err != nil {
		t.Fatal(err)
	}
	whole := map[string]*db.Item{}
	for it, err := range then.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		whole[it.Key] = it
	}
	for include := range db.Include(16) {
		q := db.Query{Key: "k3", From: "image", K: 40, Include: include}
		res, err := then.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		all, err := then.SearchAll(ctx, []db.Query{q})
		if err != nil {
			t.Fatal(err)
		}
		runs, err := then.SearchRadius(ctx, q, 1000)
		if err != nil {
			t.Fatal(err)
		}
		within, err := dbkit.Collect(runs.Hits(ctx))
		if err != nil {
			t.Fatal(err)
		}
		if err := runs.Close(); err != nil {
			t.Fatal(err)
		}
		near, err := dbkit.Collect(then.Neighbors(ctx, q))
		if err != nil {
			t.Fatal(err)
		}
		for _, hits := range [][]db.Hit{res.Hits, all[0].Hits, within, near} {
			if len(hits) != 40 {
				t.Fatalf("%d hits", len(hits))
			}
			for _, h := range hits {
				if include == 0 {
					if h.Item != nil {
						t.Fatalf("%+v", h)
					}
					continue
				}
				want := &db.Item{Key: h.Key}
				if include&db.IncludeLabels != 0 {
					want.Labels = whole[h.Key].Labels
				}
				if include&db.IncludeFields != 0 {
					want.Fields = whole[h.Key].Fields
				}
				if include&db.IncludePayload != 0 {
					want.Payload = whole[h.Key].Payload
				}
				if include&db.IncludeVectors != 0 {
					want.Vectors = whole[h.Key].Vectors
				}
				if diff := cmp.Diff(want, h.Item); diff != "" {
					t.Fatalf("include %b: %s", include, diff)
				}
			}
		}
	}
	if _, err := c.Search(ctx, db.Query{Key: "k3", Include: 16}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("unknown parts: %v", err)
	}
}
