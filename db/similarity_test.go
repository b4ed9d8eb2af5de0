package db_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
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
	d, c, items := openPairs(t, -1, 240, synth.Config{Classes: 4, Noise: 2})
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
	d, c := openNew(t, "db", &db.Options{FS: origin}, dbkit.PairsSchema)
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
						gocmp.Diff(hits, got[stage][i], cmpopts.EquateNaNs()))
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
				t.Fatalf("query %+v: pages differ: %s", q,
					gocmp.Diff(whole.Hits, paged, cmpopts.EquateNaNs()))
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
	train(t, c, items, dbkit.TinyTraining(1))
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
				diff := gocmp.Diff(want, h.Item)
				stopIf(t, diff != "", "include %b: %s", include, diff)
			}
		}
	}
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "k3", Include: 2 * db.IncludeExplain})), db.ErrInvalid)
}

// withinCodes is what Explain says where vectors decide within a code.
const withinCodes = "vectors within codes"

// orderOf returns the order that a query is answered in.
func orderOf(t *testing.T, c *db.Collection, q db.Query) string {
	t.Helper()
	x, _ := need2(dbkit.Explain(ctx, c, q, -1))(t)
	return x.Rerank
}

// In the order auto vectors decide within a code where all items have the modality of the query, and
// projections where some lack it. What is written in between does not shift the pages of an answer that
// has begun.
func TestAutoOrder(t *testing.T) {
	dbkit.LongTest(t)
	_, c, items := openPairs(t, -1, 300, synth.Config{Classes: 4, Noise: 2})
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
		diff := gocmp.Diff(want.Hits, got, cmpopts.EquateNaNs())
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
		putEach(t, c, items[n:])
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
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{"e": vector(dim),
			"other": vector(3)}, Fields: map[string]any{"year": int64(2000 + i%5)}}
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
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, vectorSchema)
	defer dbkit.MustClose(t, d)
	x := make([]float32, 48)
	x[3] = 1
	res, err := c.Search(ctx, db.Query{From: "e", Vector: x})
	failIf(t, err != nil || len(res.Hits) != 0, "without items: %v, %v", res, err)
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
		{db.Query{}, db.ErrInvalid},
	} {
		_, err := c.Search(ctx, of.q)
		failIf(t, !errors.Is(err, of.want), "%+v: %v", of.q, err)
	}
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{From: "e", Vector: x}, 4)), db.ErrNoModel)
	errorIs(t, errOf(dbkit.CountWithin(c, db.Query{From: "e", Vector: x}, 4)), db.ErrNoModel)
}

// Few vectors are read where bounds tell them apart; and many that are as near as each other, as all
// are that have nothing in common with a query, take no time that grows with their square.
func TestUntrainedReads(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 64},
		{Name: "words", Dim: 1000, Sparse: true}}}))(t)
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
		x, _, err := dbkit.Explain(ctx, c, db.Query{From: "e", Vector: items[1].Vectors["e"], K: k}, -1)
		failIf(t, err != nil || x.Scanned != n || x.Compared < k || x.Compared > 2*k+20, "k = %d: %+v, %v", k,
			x, err)
	}
	across := make([]float32, 64)
	across[63] = 1
	for _, q := range []db.Query{
		{From: "e", Vector: across},
		{From: "words", Sparse: &db.Sparse{Index: []uint32{999}, Value: []float32{1}}},
	} {
		res, err := c.Search(ctx, q)
		failIf(t, err != nil || len(res.Hits) != 10 || res.Hits[0].Row != 0 || res.Hits[9].Row != 9 ||
			res.Hits[9].Similarity != 0, "%+v, %v", res, err)
	}
}

// plainMetric is what a metric makes of two dense vectors: where it puts them, and what hits say.
func plainMetric(metric db.Metric, x, y []float32) (place, similarity float32) {
	var xy, apart float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, apart = xy+a*b, apart+(a-b)*(a-b)
	}
	within := func(x float64) float32 { return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32))) }
	switch metric {
	case db.Dot:
		return within(xy), within(xy)
	case db.L2:
		d := within(apart)
		return -d, float32(1 / (1 + float64(d)))
	}
	return plainCosine(x, y), plainCosine(x, y)
}

// Answers by every metric are those of a plain computation over all vectors, with a filter and page by page,
// before vectors are in memory and afterwards.
func TestMetricsAgreeWithTheDefinition(t *testing.T) {
	t.Parallel()
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		schema := db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 32, Metric: metric}},
			Fields: embeddedSchema.Fields}
		items := embeddedItems(0, 900, 32, 1)
		for i, it := range items { // so that cosines say something else than products and distances
			for j := range it.Vectors["e"] {
				it.Vectors["e"][j] *= float32(1 + i%7)
			}
		}
		d, c := openWith(t, vfs.NewMem(), schema, items)
		for round, x := range synth.Embeddings(1000, 20, 32, 1) {
			want := slices.DeleteFunc(slices.Clone(items),
				func(it *db.Item) bool { return it.Fields["year"] == int64(2003) })
			slices.SortStableFunc(want, func(a, b *db.Item) int {
				p, _ := plainMetric(metric, x, a.Vectors["e"])
				q, _ := plainMetric(metric, x, b.Vectors["e"])
				return cmp.Compare(q, p)
			})
			q := db.Query{From: "e", Vector: x, Where: "year != 2003", K: 7}
			for at := 0; at < 21; at += q.K {
				res := need(c.Search(ctx, q))(t)
				for i, h := range res.Hits {
					_, similarity := plainMetric(metric, x, want[at+i].Vectors["e"])
					if h.Key != want[at+i].Key || math.Abs(float64(h.Similarity-similarity)) > 1e-5*max(1,
						math.Abs(float64(similarity))) {
						t.Fatalf("%s: hit %d is %+v, want %s at %g", metric, at+i, h, want[at+i].Key,
							similarity)
					}
				}
				q.After = res.Next
			}
			if round == 0 {
				must(t, d.WaitForIndex(ctx))
			}
		}
	}
}

// Distances that are too small or too great for similarities to tell them apart are in order, and so
// are the pages.
func TestL2OfAllScales(t *testing.T) {
	for _, scale := range []float64{1e-15, 1e-6, 1, 1e12} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
		c := need(d.CreateCollection(ctx, "main",
			db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 2, Metric: db.L2}}}))(t)
		for i := range 50 { // 49 is the nearest
			need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i),
				Vectors: map[string][]float32{"e": {float32(float64(100-i) * scale), 0}}}))(t)
		}
		q := db.Query{From: "e", Vector: []float32{0, 0}, K: 7} // zeros have distances
		n := 49
		for {
			res := need(c.Search(ctx, q))(t)
			for _, h := range res.Hits {
				stopIf(t, h.Key != fmt.Sprint(n), "scale %g: %s in place of %d", scale, h.Key, n)
				n--
			}
			if q.After = res.Next; q.After == "" {
				break
			}
		}
		failIf(t, n != -1, "scale %g: it ends before %d", scale, n)
		dbkit.MustClose(t, d)
	}
}

// An inner product that float32 cannot hold is the greatest number that it can.
func TestDotBeyondFloat32(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 1, Metric: db.Dot}}}))(t)
	for i, v := range []float32{1e30, -1e30, 1e31} {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": {v}}}))(t)
	}
	q := db.Query{From: "e", Vector: []float32{1e30}, K: 1}
	for i, want := range []db.Hit{{Key: "0", Similarity: math.MaxFloat32},
		{Key: "2", Similarity: math.MaxFloat32}, {Key: "1", Similarity: -math.MaxFloat32}} {
		res, err := c.Search(ctx, q)
		stopIf(t, err != nil || res.Hits[0].Key != want.Key || res.Hits[0].Similarity != want.Similarity ||
			(res.Next == "") != (i == 2), "page %d: %+v, %v", i, res, err)
		q.After = res.Next
	}
}

// Metrics and spaces are stored in one form, however they are declared, and what contradicts itself
// is refused with what is wrong.
func TestMetricsOfSchemas(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	made := 0
	create := func(all ...db.Modality) (*db.Collection, error) {
		made++
		return d.CreateCollection(ctx, fmt.Sprint("c", made), db.Schema{Modalities: all})
	}
	is := func(c *db.Collection, want ...db.Modality) {
		t.Helper()
		got := dbkit.MustSchema(t, c).Modalities
		failIf(t, !slices.Equal(got, want), "%+v, want %+v", got, want)
	}
	m := func(name string, metric db.Metric, of string) db.Modality {
		return db.Modality{Name: name, Dim: 4, Metric: metric, SpaceOf: of}
	}
	var c *db.Collection
	for _, r := range []struct {
		given, want []db.Modality
		says        string
	}{
		{given: []db.Modality{m("a", db.Cosine, ""), m("b", "", "")},
			want: []db.Modality{m("a", "", ""), m("b", "", "")}},
		{given: []db.Modality{m("a", "", "b"), m("b", "", "c"), m("c", db.Dot, "")},
			want: []db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a"), m("c", db.Dot, "a")}},
		{given: []db.Modality{m("a", "", "b"), m("b", db.L2, "a"), m("c", db.L2, "")},
			want: []db.Modality{m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, "")}},
		{given: []db.Modality{m("a", "", "a")}, says: `the space of modality "a": it names itself`},
		{given: []db.Modality{m("a", "", "z")},
			says: `the space of modality "a": there is no modality "z": collection "c`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 5, SpaceOf: "a"}},
			says: `modality "b" is of dimension 5, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", "", ""), {Name: "b", Dim: 4, Sparse: true, SpaceOf: "a"}},
			says: `modality "b" is sparse, of dimension 4, and "a" is of dimension 4: they cannot share a space`},
		{given: []db.Modality{m("a", db.Dot, ""), m("b", db.Cosine, "a")},
			says: `modality "b" has the metric cosine, and "a", which shares its space, dot: a space has one metric`},
		{given: []db.Modality{m("a", "manhattan", "")},
			says: `modality "a": unknown metric "manhattan": cosine, dot and l2 are possible`},
	} {
		made, err := create(r.given...)
		switch {
		case r.says != "":
			failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says) ||
				strings.Count(err.Error(), "fddhdb: ") != 1, "%+v: %v", r.given, err)
		case err != nil:
			t.Errorf("%+v: %v", r.given, err)
		default:
			is(made, r.want...)
			c = made
		}
	}

	// Alterations.
	is(c, m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, ""))
	must(t, c.Alter(ctx, db.Alteration{SpaceOf: map[string]string{"a": "c"}})) // b comes along
	is(c, m("a", db.L2, ""), m("b", db.L2, "a"), m("c", db.L2, "a"))
	must(t, c.Alter(ctx, db.Alteration{SpaceOf: map[string]string{"a": ""}})) // the others stay together
	is(c, m("a", db.L2, ""), m("b", db.L2, ""), m("c", db.L2, "b"))
	must(t, c.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"c": db.Cosine}}))
	is(c, m("a", db.L2, ""), m("b", "", ""), m("c", "", "b"))
	// it is so
	must(t, c.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"c": ""},
		SpaceOf: map[string]string{"a": ""}}))
	must(t, c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{m("d", "", "")},
		SpaceOf: map[string]string{"d": "a"}}))
	is(c, m("a", db.L2, ""), m("b", "", ""), m("c", "", "b"), m("d", db.L2, "a"))
	must(t, c.Alter(ctx, db.Alteration{SpaceOf: map[string]string{"c": ""}}))
	must(t, c.Alter(ctx, db.Alteration{SpaceOf: map[string]string{"b": "", "c": "a"},
		Metrics: map[string]db.Metric{"d": db.Dot}}))
	want := []db.Modality{m("a", db.Dot, ""), m("b", "", ""), m("c", db.Dot, "a"), m("d", db.Dot, "a")}
	is(c, want...)
	for _, r := range []struct {
		a    db.Alteration
		says string
	}{
		{db.Alteration{Metrics: map[string]db.Metric{"z": db.Dot}}, `unknown modality "z"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": "far"}}, `modality "a": unknown metric "far"`},
		{db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot, "c": db.L2}},
			`modality "c" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "a"}},
			`modality "b" has the metric cosine, and "a", which shares its space, dot`},
		{db.Alteration{SpaceOf: map[string]string{"b": "b"}}, `the space of modality "b": it names itself`},
		{db.Alteration{SpaceOf: map[string]string{"z": ""}}, `unknown modality "z"`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")}},
			`modality "e" has the metric l2, and "a", which shares its space, dot`},
		{db.Alteration{AddModalities: []db.Modality{m("e", db.L2, "a")},
			Metrics: map[string]db.Metric{"a": db.Cosine}},
			`modality "e" has the metric l2, and "a", which shares its space, cosine`},
		{db.Alteration{AddModalities: []db.Modality{{Name: "e", Dim: 5, SpaceOf: "a"}}},
			`they cannot share a space`},
	} {
		err := c.Alter(ctx, r.a)
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(fmt.Sprint(err), r.says), "%+v: %v",
			r.a, err)
		is(c, want...)
	}
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	errorIs(t, codes.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"a": db.Dot}}), db.ErrInvalid,
		"bring codes")

	// What a program wants to find.
	name := c.Name()
	for _, r := range []struct {
		wanted []db.Modality
		says   string // "": it is there
	}{
		{want, ""},
		{[]db.Modality{m("d", "", "c"), m("c", db.Dot, "")}, ""},
		{[]db.Modality{m("b", db.Cosine, "")}, ""},
		{[]db.Modality{m("b", db.L2, "")}, `modality "b" is of dimension 4, not of dimension 4, by l2`},
		{[]db.Modality{m("a", "", "")}, `modality "a" is of dimension 4, by dot, not of dimension 4`},
		{[]db.Modality{m("a", db.Dot, ""), m("c", db.Dot, "")},
			`modality "c" is of dimension 4, by dot, in the space of a, not of dimension 4, by dot`},
		{[]db.Modality{m("a", db.Dot, ""), m("b", db.Dot, "a")},
			`modality "b" is of dimension 4, not of dimension 4, by dot, in the space of a`},
	} {
		_, err := d.EnsureCollection(ctx, name, db.Schema{Modalities: r.wanted})
		failIf(t, r.says == "" && err != nil || r.says != "" && (!errors.Is(err, db.ErrExists) ||
			!strings.Contains(err.Error(), r.says)), "%+v: %v", r.wanted, err)
	}
}

// The descriptor has a version of its own exactly where a modality has a metric or shares a space.
// Index-only copies and backups keep both, and so does a repair that has the copy of a space alone.
func TestMetricsAreStored(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		opts := &db.Options{FS: vfs.NewMem()}
		d := dbkit.MustOpen(t, "db", opts)
		schema := dbkit.PairsSchema
		if shared {
			schema.Modalities = []db.Modality{{Name: "image", Dim: 8, Metric: db.L2},
				{Name: "text", Dim: 5, Metric: db.Dot}}
		}
		c := need(d.CreateCollection(ctx, "main", schema))(t)
		train(t, c, dbkit.Pairs(60, synth.Config{}), db.TrainOptions{Options: fit.Options{Bits: 16}})
		want := dbkit.MustSchema(t, c)
		key := codec.CollectionKey(codec.KindCollection, 1)
		is := indexOnlyOf(t, d, opts)
		s := dbkit.MustSchema(t, dbkit.MustCollection(t, is, "main"))
		failIf(t, !s.IndexOnly || !slices.Equal(s.Modalities, want.Modalities), "index-only: %+v", s)
		dbkit.MustClose(t, is)
		keyValue{key, nil}.put(t, d)
		dbkit.MustClose(t, d)
		need(db.Repair(ctx, "db", opts, db.RepairOptions{}, nil))(t)
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
		s = dbkit.MustSchema(t, c)
		failIf(t, !reflect.DeepEqual(s, want), "repaired: %+v, want %+v", s, want)
		must(t, c.Alter(ctx,
			db.Alteration{Metrics: map[string]db.Metric{"image": db.Cosine, "text": db.Cosine}}))
		dbkit.CheckSound(t, d, "at the end")
		dbkit.MustClose(t, d)
	}
}

// Descriptors that no program has stored are refused.
func TestDescriptorsWithWrongMetrics(t *testing.T) {
	for says, text := range map[string]string{
		"":                   `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"l2"},{"name":"b","dim":3,"metric":"l2","space_of":"a"}]}`,
		"unknown metric":     `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"x"}]}`,
		"one metric":         `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"l2"},{"name":"b","dim":3,"metric":"dot","space_of":"a"}]}`,
		"metrics or spaces":  `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"space_of":"b"},{"name":"b","dim":3}]}`,
		"metrics or spaces ": `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"metric":"cosine"}]}`,
		"no modality":        `{"id":1,"name":"c","modalities":[{"name":"a","dim":3,"space_of":"x"}]}`,
	} {
		_, err := record.DecodeDescriptor([]byte(text))
		failIf(t, says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(),
			strings.TrimSpace(says))), "%s: %v, want %q", text, err, says)
	}
}

// A cursor is of the metric and of the space that its answer began with.
func TestCursorsOfMetrics(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "a", Dim: 2}, {Name: "b", Dim: 2}}}))(t)
	for i := range 9 {
		need(c.Put(ctx, &db.Item{Vectors: map[string][]float32{"a": {1, float32(i)}}}))(t)
	}
	q := db.Query{From: "a", Vector: []float32{1, 1}, K: 3}
	for _, a := range []db.Alteration{{Metrics: map[string]db.Metric{"a": db.Dot}},
		{Metrics: map[string]db.Metric{"a": ""}}, {SpaceOf: map[string]string{"b": "a"}}} {
		page := need(c.Search(ctx, q))(t)
		must(t, c.Alter(ctx, a))
		q.After = page.Next
		_, err := c.Search(ctx, q)
		failIf(t, !errors.Is(err, db.ErrInvalid) ||
			!strings.Contains(err.Error(), "the metric and the space"), "%+v: %v", a, err)
		q.After = ""
	}
	for least, metric := range map[float32]db.Metric{1.5: db.Cosine, -1.5: db.L2, 2: db.L2,
		float32(math.Inf(1)): db.Dot, float32(math.NaN()): db.L2} {
		must(t, c.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"a": metric}}))
		q.MinSimilarity = least
		_, err := c.Search(ctx, q)
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "least similarity"),
			"%v by %s: %v", least, metric, err)
	}
}
