package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
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
	for it := range every(t, c.Items(ctx, "")) {
		sum := make([]float64, 16)
		for name, x := range it.Vectors {
			_, z := need2(c.EncodeQuery(ctx, db.Query{From: name, Vector: x}))(t)
			for j := range sum {
				sum[j] += z[j]
			}
		}
		projections[it.Key] = sum
	}
	for _, order := range []db.Rerank{db.RerankProjection, db.RerankAsymmetric} {
		for _, of := range items[:12] {
			q := db.Query{From: "image", Vector: of.Vectors["image"], K: len(items), Rerank: order}
			_, z := need2(c.EncodeQuery(ctx, q))(t)
			all, err := c.Search(ctx, q)
			stopIf(t, err != nil || len(all.Hits) != len(items), "%v, %v", len(all.Hits), err)
			decided := 0
			for i, h := range all.Hits {
				want := cosine(z, projections[h.Key])
				failIf(t, math.Abs(float64(h.Similarity)-want) > .01,
					"%v: hit %q has similarity %g, the cosine is %g", order, h.Key, h.Similarity, want)
				if i == 0 {
					continue
				}
				if last := all.Hits[i-1]; last.Distance == h.Distance && last.Score == h.Score {
					decided++
					failIf(t, last.Similarity < h.Similarity || last.Similarity == h.Similarity &&
						last.Row > h.Row, "%v: %+v comes before %+v", order, last, h)
				}
			}
			stopIf(t, decided == 0, "no two items share a code")
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
				failIf(t, err != nil || !slices.Equal(res.Hits, want),
					"%v: %d hits with similarity %g, want %d, %v", order, len(res.Hits), least, len(want),
					err)
				within := 0
				for _, h := range want {
					if h.Distance <= 5 {
						within++
					}
				}
				gives(t, within, order, least)(dbkit.CountWithin(c, q, 5))
				runs, err := c.SearchRadius(ctx, q, 5)
				stopIf(t, err != nil || runs.Total() != within, "%v, %v, %v", err, runs.Total(), within)
				rows, sum := 0, 0
				for r := range every(t, runs.All(ctx)) {
					rows += len(r.Rows)
				}
				counts, err := runs.Distances(ctx)
				for _, n := range counts {
					sum += n
				}
				if hits, err2 := dbkit.Collect(runs.Hits(ctx)); err != nil || err2 != nil || rows != within ||
					sum != within || len(hits) != within {
					t.Errorf("%v: %d rows, %d counted, %d hits, want %d: %v, %v", order, rows, sum, len(hits),
						within, err, err2)
				}
				must(t, runs.Close())
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
			q := db.Query{From: "text", Vector: x, K: len(items), Rerank: db.RerankProjection,
				Include: db.IncludeVectors}
			plain := need(c.Search(ctx, q))(t)
			q.Rerank = db.RerankAuto
			got := need(c.Search(ctx, q))(t)
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
				last := got.Hits[i-1]
				failIf(t, last.Similarity < h.Similarity, "%+v comes before %+v", last, h)
			}
		}
		must(t, d.WaitForIndex(ctx))
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
	t.Parallel()
	c, items := openMixed(t, 32)
	code, _ := need2(c.EncodeQuery(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"]}))(t)
	for _, q := range []db.Query{
		{Code: code},
		{Key: "k1"},
		{From: "text", Vector: items[0].Vectors["text"], Rerank: db.RerankNone},
	} {
		res, err := c.Search(ctx, q)
		stopIf(t, err != nil || len(res.Hits) == 0, "%v", err)
		for _, h := range res.Hits {
			failIf(t, !math.IsNaN(float64(h.Similarity)), "%+v", h)
		}
		q.MinSimilarity = .5
		errorIs(t, errOf(c.Search(ctx, q)), db.ErrInvalid)
	}
	for _, least := range []float32{-1.1, 1.1, float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := c.Search(ctx, db.Query{From: "text", Vector: items[0].Vectors["text"],
			Rerank: db.RerankProjection, MinSimilarity: least}); !errors.Is(err, db.ErrInvalid) {
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
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	dbkit.PutAll(t, d, c, items[:n])
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustClose(t, d)

	var want [][][]db.Hit // by stage: what the first budget has answered
	part := int64(26 * n) // of what they take
	for i, budget := range []int64{-1, 1, part, 0} {
		fs := vfs.NewMem()
		need(vfs.Clone(origin, fs, "db", "db"))(t)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget})
		c := dbkit.MustCollection(t, d, "main")
		var got [][][]db.Hit
		ask := func() { got = append(got, everyOrder(t, c, items)) }
		ask() // while they are loaded, perhaps
		must(t, d.WaitForIndex(ctx))
		ask()
		bytes := dbkit.MustStats(t, d).Collections[0].RerankBytes
		switch {
		case budget == 0 && bytes < int64(30*n), budget == part && (bytes < part/4 || bytes > part),
			(budget == -1 || budget == 1) && bytes != 0:
			t.Errorf("budget %d: projections take %d bytes", budget, bytes)
		}
		for j, it := range items[n:] { // new items, changed ones, deleted ones
			need(c.Put(ctx, it))(t)
			changed := *items[(j*7)%n]
			changed.Vectors = items[(j*11)%n].Vectors
			need(c.Put(ctx, &changed))(t)
			if j%5 == 0 {
				need(c.Delete(ctx, items[(j*13)%n].Key))(t)
			}
		}
		ask()
		checkSpaces(t, d)
		must(t, d.WaitForIndex(ctx))
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
					t.Fatalf("budget %d, stage %d, query %d: %s", budget, stage, i,
						cmp.Diff(hits, got[stage][i], cmpopts.EquateNaNs()))
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

// everyOrder returns the hits of many queries, read page by page, which is what they are in one piece.
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
			whole := need(c.Search(ctx, q))(t)
			var paged []db.Hit
			for q.K = 9; ; q.K = 400 {
				page := need(c.Search(ctx, q))(t)
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
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	then := need(snap.Collection("main"))(t)
	changed := *items[3]
	changed.Fields, changed.Labels = map[string]any{"year": int64(3000)}, []string{"other"}
	need(c.Put(ctx, &changed))(t)
	whole := map[string]*db.Item{}
	for it := range every(t, then.Items(ctx, "")) {
		whole[it.Key] = it
	}
	for include := range db.Include(16) {
		q := db.Query{Key: "k3", From: "image", K: 40, Include: include}
		res := need(then.Search(ctx, q))(t)
		all := need(then.SearchAll(ctx, []db.Query{q}))(t)
		runs := need(then.SearchRadius(ctx, q, 1000))(t)
		within := need(dbkit.Collect(runs.Hits(ctx)))(t)
		must(t, runs.Close())
		for _, hits := range [][]db.Hit{res.Hits, all[0].Hits, within} {
			stopIf(t, len(hits) != 40, "%d hits", len(hits))
			for _, h := range hits {
				if include == 0 {
					stopIf(t, h.Item != nil, "%+v", h)
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
				diff := cmp.Diff(want, h.Item)
				stopIf(t, diff != "", "include %b: %s", include, diff)
			}
		}
	}
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "k3", Include: 64})), db.ErrInvalid)
}

// withinCodes is what Explain says where vectors decide within a code.
const withinCodes = "vectors within codes"

// orderOf returns the order that a query is answered in.
func orderOf(t *testing.T, c *db.Collection, q db.Query) string {
	t.Helper()
	x, _ := need2(c.Explain(ctx, q, -1))(t)
	return x.Rerank
}

// In the order auto vectors decide within a code where all items have the modality of the query, and
// projections where some lack it. What is written in between does not shift the pages of an answer that
// has begun.
func TestAutoOrder(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Classes: 4, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	lacking := &db.Item{Key: "no text", Vectors: map[string][]float32{"image": items[0].Vectors["image"]}}
	vector := items[7].Vectors["text"]
	for _, from := range []struct {
		order string
		put   bool // the item that lacks the modality comes between the pages; else it goes
	}{{withinCodes, true}, {"projection", false}} {
		q := db.Query{From: "text", To: "text", Vector: vector, K: 300}
		if got := orderOf(t, c, q); got != from.order {
			t.Fatalf("the order is %s, want %s", got, from.order)
		}
		want := need(c.Search(ctx, q))(t)
		q.K = 40
		page := need(c.Search(ctx, q))(t)
		if from.put {
			putAll(t, c, []*db.Item{lacking})
		} else if _, err := c.Delete(ctx, lacking.Key); err != nil {
			t.Fatal(err)
		}
		if got := orderOf(t, c, q); got == from.order {
			t.Fatalf("the order is still %s", got)
		}
		got := page.Hits
		for q.After = page.Next; q.After != "" && len(got) <= len(want.Hits); q.After = page.Next {
			page = need(c.Search(ctx, q))(t)
			got = append(got, page.Hits...)
		}
		diff := cmp.Diff(want.Hits, got, cmpopts.EquateNaNs())
		failIf(t, diff != "", "pages in the order %s: %s", from.order, diff)
	}
	// The cursor of another order goes on in neither.
	asymmetric := need(c.Search(ctx, db.Query{From: "text", Vector: vector, Rerank: db.RerankAsymmetric}))(t)
	errorIs(t, errOf(c.Search(ctx, db.Query{From: "text", Vector: vector, After: asymmetric.Next})),
		db.ErrInvalid)
	for name, q := range map[string]db.Query{
		"by a code": {Code: make([]byte, 2)}, "by a stored code": {Key: "k1"},
		"by a vector of zeros": {From: "text", Vector: make([]float32, 5)},
	} {
		got := orderOf(t, c, q)
		failIf(t, got != "projection", "%s: the order is %s", name, got)
	}
}

// Vectors of many items do not decide.
func TestAutoOrderOfManyItems(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}}))(
		t)
	item := func(i int) *db.Item {
		x := []float32{float32(i % 7), float32(i % 11), 1}
		return &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x},
			Labels: []string{fmt.Sprint(i % 2)}}
	}
	batch := d.NewBatch()
	for i := range 40_000 {
		must(t, batch.Put(c, item(i)))
	}
	must(t, batch.Commit(ctx))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 4}, Rows: 100})
	q := db.Query{From: "image", Vector: []float32{1, 2, 3}}
	got := orderOf(t, c, q)
	failIf(t, got != withinCodes, "40,000 items: %s", got)
	putAll(t, c, []*db.Item{item(40_000)})
	got = orderOf(t, c, q)
	failIf(t, got != "projection", "40,001 items: %s", got)
}

// Loading what puts hits in order ends with any budget, stays within it, and does not begin again
// and again while items are written.
func TestLoadingEndsWithAnyBudget(t *testing.T) {
	dbkit.LongTest(t)
	const n, dim = 3000, 96 // some 50 KB of directions, and 312 KB of vectors
	data := synth.NewStream(synth.Config{Classes: 4, Dims: []int{dim}})
	var items []*db.Item
	for i := range n + 600 {
		x, labels := data.Next()
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x[0]}}
		if i < 300 {
			it.Labels = []string{fmt.Sprint(labels[0])}
		}
		items = append(items, it)
	}
	origin := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: origin})
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: dim}}}))(t)
	dbkit.PutAll(t, d, c, items[:n])
	for seed := range uint64(2) { // the second space stands by
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 6, Seed: seed,
			Sweeps: 1}})
	}
	dbkit.MustClose(t, d)
	for budget := int64(8_000); budget < 560_000; budget = budget*int64(effort.Of(9, 36))/8 + 1000 {
		fs := vfs.NewMem()
		need(vfs.Clone(origin, fs, "db", "db"))(t)
		var loaded atomic.Int64 // items
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget, NoSync: true,
			EventListener: func(_ context.Context, e *event.Event) {
				if e.Op == event.OpRerank && e.Phase == event.PhaseDone {
					loaded.Add(e.Items)
				}
			}})
		c := dbkit.MustCollection(t, d, "main")
		need(c.Search(ctx, db.Query{From: "image", Vector: items[3].Vectors["image"]}))(t)
		// wait fails if it does not end: the limit is no measure of speed.
		wait := func(when string) int64 {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			must(t, d.WaitForIndex(limited), "budget", budget, when)
			return dbkit.MustStats(t, d).Collections[0].RerankBytes
		}
		if bytes := wait("after opening"); bytes > budget || bytes == 0 && budget > 64_000 {
			t.Errorf("budget %d: %d bytes after opening", budget, bytes)
		}
		before := loaded.Load()
		for _, it := range items[n:] {
			need(c.Put(ctx, it))(t)
		}
		bytes := wait("after writes")
		if most := budget + 4096; bytes > most { // as one commit may go beyond it
			t.Errorf("budget %d: %d bytes after writes", budget, bytes)
		}
		// What is given back is an eighth of the budget at a time, so that it comes in as seldom.
		again := loaded.Load() - before
		failIf(t, again > 6*n, "budget %d: %d items loaded while 600 were written", budget, again)
		checkSpaces(t, d)
		dbkit.MustClose(t, d)
	}
}

// A cursor says that something follows, with a least similarity, too.
func TestNothingFollowsTheLastHit(t *testing.T) {
	t.Parallel()
	c, items := openMixed(t, 16)
	for _, least := range []float32{.5, .9, .999, 1} {
		for k := range 60 {
			q := db.Query{From: "image", Vector: items[0].Vectors["image"], K: k + 1,
				Rerank: db.RerankProjection, MinSimilarity: least}
			res := need(c.Search(ctx, q))(t)
			if q.After = res.Next; q.After == "" {
				continue
			}
			if more, err := c.Search(ctx, q); err != nil || len(more.Hits) == 0 {
				t.Fatalf("least %g: behind %d of %d hits nothing follows, %v", least, len(res.Hits), q.K, err)
			}
		}
	}
}

// Rows that had no projection when they were loaded take no memory. When they get one the budget
// holds, too, for the projections of the active space as for others.
func TestBudgetHoldsWhereRowsGetVectors(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	const n, budget = 4000, 40_000
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), RerankCacheBytes: budget, NoSync: true})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 4}}}))(
		t)
	item := func(i int) *db.Item {
		return &db.Item{Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(i % 2)},
			Vectors: map[string][]float32{"image": {float32(i % 2), float32(i % 13), float32(i % 7), 1}}}
	}
	var taught, plain, full []*db.Item
	for i := range 100 {
		taught = append(taught, item(i))
	}
	for i := 100; i < n; i++ {
		it := item(i)
		full = append(full, it)
		plain = append(plain, &db.Item{Key: it.Key, Labels: it.Labels})
	}
	dbkit.PutAll(t, d, c, taught)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 4}})
	for _, items := range [][]*db.Item{plain, full} {
		for _, it := range items { // one by one, as loading has no room for as many as a bulk load brings
			need(c.Put(ctx, it))(t)
		}
		must(t, d.WaitForIndex(ctx))
		got := dbkit.MustStats(t, d).Collections[0].RerankBytes
		failIf(t, got > budget, "%d bytes of %d", got, budget)
	}
	checkSpaces(t, d)
}
