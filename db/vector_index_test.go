package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// embedded makes items whose vectors look like embeddings, with some odd ones among them.
func embedded(t testing.TB, from, n, dim int) []*db.Item {
	t.Helper()
	e := need(synth.NewEmbeddingSource(synth.Topics, dim, 7))(t)
	var items []*db.Item
	for i := from; i < from+n; i++ {
		x := e.Vector(i)
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{"e": x},
			Fields: map[string]any{"year": int64(2000 + i%100)}}
		switch i % 50 {
		case 3:
			it.Vectors = nil
		case 5:
			copy(x, items[len(items)-1].Vectors["e"])
		case 9:
			clear(x)
		case 11, 13:
			for j := range x {
				x[j] *= []float32{1e18, 1e-18}[i%50/13]
			}
		}
		items = append(items, it)
	}
	return items
}

var indexedSchema = db.Schema{
	Modalities: []db.Modality{{Name: "e", Dim: 48}},
	Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
}

// indexed makes a collection with an index of the vectors of items.
func indexed(t testing.TB, fs vfs.FS, items []*db.Item) (*db.DB, *db.Collection) {
	t.Helper()
	return indexedBy(t, fs, items, db.Cosine)
}

// indexedBy is indexed with another metric.
func indexedBy(t testing.TB, fs vfs.FS, items []*db.Item, metric db.Metric) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	schema := indexedSchema
	schema.Modalities = []db.Modality{{Name: "e", Dim: 48, Metric: metric}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	dbkit.PutAll(t, d, c, items)
	need(c.IndexVectors(ctx, db.IndexOptions{}))(t)
	return d, c
}

// With an index an answer may lack items, about as many as the recall allows. All that it has is
// as without: similarities, order, what the filter admits. With recall 1 nothing is missing.
func TestAnswersByAnIndex(t *testing.T) {
	dbkit.LongTest(t)
	items := embedded(t, 0, 2000, 48)
	byKey, queries := map[string]*db.Item{}, embedded(t, 1<<20, 150, 48)
	for i, it := range slices.Concat(items, queries) {
		for j := range it.Vectors["e"] { // so that metrics differ
			it.Vectors["e"][j] *= 1 + float32(i%7)/10
		}
	}
	for _, it := range items {
		byKey[it.Key] = it
	}
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		d, c := indexedBy(t, vfs.NewMem(), items, metric)
		for _, where := range []string{"", "year < 2050", "year = 2007"} {
			for _, k := range []int{1, 10, 40} {
				recalls := []float64{0, .8, .95}
				found, wanted := make([]int, len(recalls)), 0
				for _, of := range queries {
					x := of.Vectors["e"]
					if x == nil || slices.Max(x) == 0 {
						continue
					}
					q := db.Query{From: "e", Vector: x, K: k, Where: where, Recall: 1}
					exact := need(c.Search(ctx, q))(t)
					stopIf(t, exact.Approximate, "recall 1 is approximate")
					wanted += len(exact.Hits)
					for i, recall := range recalls {
						q.Recall = recall
						r := need(c.Search(ctx, q))(t)
						checkHits(t, r.Hits, x, byKey, where, metric)
						stopIf(t, len(r.Hits) != len(exact.Hits), "%d hits, there are %d", len(r.Hits),
							len(exact.Hits))
						found[i] += shared(exact.Hits, r.Hits)
					}
				}
				for i, recall := range recalls {
					least := recall
					if recall == 0 {
						least = .99
					}
					got := float64(found[i]) / float64(wanted)
					failIf(t, got < least-.03, "%s, recall %v, k = %d, where %q: %v of what there is", metric,
						least, k, where, got)
				}
			}
		}
		dbkit.CheckSound(t, d, string(metric))
		dbkit.MustClose(t, d)
	}
}

// checkHits compares hits with what they have to be, if nothing is missing or not.
func checkHits(t testing.TB, hits []db.Hit, x []float32, items map[string]*db.Item, where string,
	metric db.Metric) {
	t.Helper()
	for i, h := range hits {
		it := items[h.Key]
		stopIf(t, it == nil || it.Vectors["e"] == nil, "%q is a hit, and has no vector", h.Key)
		_, want := plainMetric(metric, x, it.Vectors["e"])
		stopIf(t, h.Similarity != want, "%q has similarity %v, it is %v", h.Key, h.Similarity, want)
		year := it.Fields["year"].(int64)
		stopIf(t, where == "year < 2050" && year >= 2050 || where == "year = 2007" && year != 2007,
			"%q is of %d, %s", h.Key, year, where)
		stopIf(t, i > 0 && (h.Similarity > hits[i-1].Similarity || h.Similarity == hits[i-1].Similarity &&
			h.Row <= hits[i-1].Row && metric != db.L2), "hit %d comes behind %d", i, i-1)
	}
}

// What an answer has does not depend on what is in memory, nor on whether the database has been opened since.
func TestAnswersByAnIndexDoNotDependOnMemory(t *testing.T) {
	dbkit.LongTest(t)
	items := embedded(t, 0, 3000, 48)
	origin := vfs.NewMem()
	d, c := indexed(t, origin, items)
	for _, it := range embedded(t, 5000, 20, 48) { // the index does not know them
		need(c.Put(ctx, it))(t)
	}
	queries := embedded(t, 1<<20, 60, 48)
	all := func(c *db.Collection) (all []string) {
		for i, of := range queries {
			if x := of.Vectors["e"]; x != nil && slices.Max(x) > 0 {
				for _, q := range []db.Query{
					{From: "e", Vector: x, Recall: .9}, {From: "e", Vector: x, K: 30, Where: "year < 2030"},
					{From: "e", Vector: x, K: 1000, MinSimilarity: .6},
				} {
					r := need(c.Search(ctx, q))(t)
					for _, h := range r.Hits {
						all = append(all, fmt.Sprint(i, h.Key, h.Similarity))
					}
				}
			}
		}
		return all
	}
	want := all(c)
	dbkit.MustClose(t, d)
	for _, budget := range []int64{-1, 1, 50_000, 0} {
		fs := vfs.NewMem()
		need(vfs.Clone(origin, fs, "db", "db"))(t)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget})
		c := dbkit.MustCollection(t, d, "main")
		for range 2 {
			got := all(c)
			failIf(t, !slices.Equal(got, want), "budget %d: other answers", budget)
			must(t, d.WaitForIndex(ctx))
		}
		dbkit.MustClose(t, d)
	}
}

// Pages follow each other: no item comes twice, and none is nearer than one before it. Together they
// find about as much as one answer does.
func TestPagesOfAnIndex(t *testing.T) {
	effort.Slow(t)
	items := embedded(t, 0, 2000, 48)
	d, c := indexed(t, vfs.NewMem(), items)
	defer dbkit.MustClose(t, d)
	byKey := map[string]*db.Item{}
	for _, it := range items {
		byKey[it.Key] = it
	}
	found, wanted := 0, 0
	for _, of := range embedded(t, 1<<20, 12, 48) {
		x := of.Vectors["e"]
		if x == nil || slices.Max(x) == 0 {
			continue
		}
		var hits []db.Hit
		q := db.Query{From: "e", Vector: x, K: 7}
		for range 10 {
			r := need(c.Search(ctx, q))(t)
			hits = append(hits, r.Hits...)
			if q.After = r.Next; r.Next == "" {
				break
			}
		}
		checkHits(t, hits, x, byKey, "", db.Cosine)
		exact := need(c.Search(ctx, db.Query{From: "e", Vector: x, K: 70, Recall: 1}))(t).Hits
		found, wanted = found+shared(exact, hits), wanted+len(exact)
	}
	failIf(t, found < wanted*96/100, "pages have %d of the %d nearest", found, wanted)
}

// What is written is found at once, under what it is now, whether the index knows of it yet or not;
// and what is gone is not. In the background the index takes in what has come.
func TestWritesBesideAnIndex(t *testing.T) {
	dbkit.LongTest(t)
	items := embedded(t, 0, 2200, 48)
	fs := vfs.NewMem()
	d, c := indexed(t, fs, items[:1500])
	now := map[string]*db.Item{}
	for _, it := range items[:1500] {
		now[it.Key] = it
	}
	r := rand.New(rand.NewPCG(3, 4))
	asked, lost := 0, 0
	check := func(it *db.Item) {
		t.Helper()
		x := it.Vectors["e"]
		if x == nil || slices.Max(x) == 0 {
			return
		}
		for _, recall := range []float64{0, 1} {
			hits := need(c.Search(ctx, db.Query{From: "e", Vector: x, K: 10, Recall: recall}))(t).Hits
			checkHits(t, hits, x, now, "", db.Cosine)
			if _, there := now[it.Key]; there && (len(hits) == 0 || hits[0].Similarity < .9999) {
				if lost++; recall == 1 {
					t.Fatalf("%q is not found by its own vector", it.Key)
				}
			}
			asked++
		}
	}
	for i, it := range items[1500:] {
		need(c.Put(ctx, it))(t)
		now[it.Key] = it
		check(it)
		if i < 100 && lost > 0 { // the index takes none in yet, and what it does not know is compared
			t.Fatalf("%q was written, and is not found by its own vector", it.Key)
		}
		old := items[r.IntN(1500+i)]
		switch i % 4 {
		case 0:
			need(c.Delete(ctx, old.Key))(t)
			delete(now, old.Key)
			check(old)
		case 1:
			other := *old
			other.Vectors = items[r.IntN(len(items))].Vectors
			need(c.Put(ctx, &other))(t)
			now[other.Key] = &other
			check(&other)
		case 2:
			if now[old.Key] != nil && items[i].Vectors != nil {
				other := *now[old.Key]
				other.Vectors = items[i].Vectors
				need(c.Merge(ctx, &db.Item{Key: old.Key, Vectors: other.Vectors}))(t)
				now[other.Key] = &other
				check(&other)
			}
		}
	}
	unknown := func() int {
		s := need(c.Stats(ctx))(t)
		return s.VectorIndexes[0].Unknown - s.VectorIndexes[0].Loose
	}
	eventually(t, "the index has taken in what has come", func() bool { return unknown() < 512 })
	dbkit.CheckSound(t, d, "merged")
	bulk := embedded(t, 100_000, 3000, 48)
	dbkit.PutAll(t, d, c, bulk)
	for _, it := range bulk {
		now[it.Key] = it
	}
	check(bulk[7])
	eventually(t, "the index has taken in a bulk load", func() bool { return unknown() < 512 })
	check(bulk[8])
	for key := range now {
		if r.IntN(10) > 0 {
			need(c.Delete(ctx, key))(t)
			delete(now, key)
		}
	}
	for _, it := range now {
		check(it)
	}
	eventually(t, "the index has let go of what is gone", func() bool { return unknown() < 512 })
	dbkit.CheckSound(t, d, "most are gone")
	d, _ = reopen(t, d, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	for _, it := range now {
		check(it)
	}
	dbkit.CheckSound(t, d, "opened again")
	failIf(t, lost > asked/50, "%d of %d were not found by their own vectors", lost, asked)
}

// An index that was made of few items follows when many come, and when most go: it is made anew, and
// what searches find stays as good.
func TestIndexesFollowTheItems(t *testing.T) {
	dbkit.LongTest(t)
	fs := vfs.NewMem()
	d, c := indexed(t, fs, embedded(t, 0, 400, 48))
	defer dbkit.MustClose(t, d)
	index := func() report.VectorIndex {
		all, err := dbkit.VectorIndexes(c)
		stopIf(t, err != nil || len(all) == 0, "%v, %v", all, err)
		return all[0] // behind it may be the one that is being made anew
	}
	n := index().Cells
	stopIf(t, n > 60, "%d cells of 400 items", n)
	items := embedded(t, 1000, 6000, 48)
	byKey := map[string]*db.Item{}
	for _, it := range append(items, embedded(t, 0, 400, 48)...) {
		byKey[it.Key] = it
	}
	for from := 0; from < len(items); from += 1000 { // singly, not as tables
		b := d.NewBatch()
		for _, it := range items[from : from+1000] {
			must(t, b.Put(c, it))
		}
		must(t, b.Commit(ctx))
	}
	recall := func() float64 {
		found, wanted := 0, 0
		for _, of := range embedded(t, 1<<20, 200, 48) {
			x := of.Vectors["e"]
			if x == nil || slices.Max(x) == 0 {
				continue
			}
			exact := need(c.Search(ctx, db.Query{From: "e", Vector: x, Recall: 1}))(t)
			r := need(c.Search(ctx, db.Query{From: "e", Vector: x, Recall: .9}))(t)
			checkHits(t, r.Hits, x, byKey, "", db.Cosine)
			for _, h := range exact.Hits {
				wanted++
				if slices.ContainsFunc(r.Hits, func(o db.Hit) bool { return o.Row == h.Row }) {
					found++
				}
			}
		}
		return float64(found) / float64(wanted)
	}
	eventually(t, "there are more cells",
		func() bool { x := index(); return x.Unknown-x.Loose < 512 && x.Cells > 80 && 2*x.Of > x.Entries })
	got := recall()
	failIf(t, got < .87, "recall %v, of .9", got)
	t.Logf("%d cells", index().Cells)
	dbkit.CheckSound(t, d, "made anew")
	before := index().Cells
	for i, it := range items {
		if i%20 > 0 {
			need(c.Delete(ctx, it.Key))(t)
			delete(byKey, it.Key)
		}
	}
	eventually(t, "there are fewer cells", func() bool {
		x := index()
		return x.Unknown-x.Loose < 512 && x.Cells < before && x.Of-x.Entries < x.Of/4+2*512 // else it is due
	})
	got = recall()
	failIf(t, got < .87, "recall %v, of .9", got)
	dbkit.CheckSound(t, d, "most are gone")
}

// An index follows also where each process writes a few items and ends: the last thing that one does is to
// take in what is due, and to make the index anew.
func TestIndexesFollowShortProcesses(t *testing.T) {
	effort.Slow(t)
	fs := vfs.NewMem()
	d, _ := indexed(t, fs, embedded(t, 0, 1000, 48))
	dbkit.MustClose(t, d)
	for i := range 20 {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
		dbkit.PutAll(t, d, dbkit.MustCollection(t, d, "main"), embedded(t, 1000+100*i, 100, 48))
		dbkit.MustClose(t, d)
	}
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs, ReadOnly: true})
	defer dbkit.MustClose(t, d)
	all, err := dbkit.VectorIndexes(dbkit.MustCollection(t, d, "main"))
	failIf(t, err != nil || len(all) != 1 || all[0].Index == 1 || all[0].Of < 1500 || all[0].Unknown > 1000,
		"%+v, %v", all, err)
	dbkit.CheckSound(t, d, "written by many")
}

// Whatever the vectors are, there is an index of them or a clear error.
func TestIndexesOfOddVectors(t *testing.T) {
	t.Parallel()
	equal := func(n int, x ...float32) (items []*db.Item) {
		for i := range n {
			items = append(items, &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": x}})
		}
		return items
	}
	for name, items := range map[string][]*db.Item{
		"one":   equal(1, 1, 2, 3),
		"equal": equal(300, 1, 2, 3),
		"zero":  equal(300, 0, 0, 0),
		"two": append(equal(1, 1, 2, 3),
			&db.Item{Key: "other", Vectors: map[string][]float32{"e": {-1, 0, 3e38}}}),
	} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
		c := need(d.CreateCollection(ctx, "main",
			db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 3}, {Name: "s", Dim: 5, Sparse: true}}}))(t)
		_, err := c.IndexVectors(ctx, db.IndexOptions{Modality: "e"})
		errorIs(t, err, db.ErrInvalid, "no item", `modality "e"`)
		dbkit.PutAll(t, d, c, items)
		_, err = c.IndexVectors(ctx, db.IndexOptions{Modality: "s"})
		errorIs(t, err, db.ErrInvalid, "sparse", `"s"`)
		_, err = c.IndexVectors(ctx, db.IndexOptions{Modality: "e", Recall: 1.5})
		errorIs(t, err, db.ErrInvalid, "recall 1.5")
		for range 2 { // the second replaces the first
			must(t, errOf(c.IndexVectors(ctx, db.IndexOptions{Modality: "e"})), name)
			r := need(c.Search(ctx, db.Query{From: "e", Vector: []float32{1, 2, 3}, K: 500}))(t)
			failIf(t, len(r.Hits) != len(items), "%s: %d hits of %d", name, len(r.Hits), len(items))
			dbkit.CheckSound(t, d, name)
		}
		all, err := dbkit.VectorIndexes(c)
		failIf(t, err != nil || len(all) != 1 || all[0].Index != 2, "%s: %+v, %v", name, all, err)
		must(t, c.DropVectorIndex(ctx, "e"))
		errorIs(t, c.DropVectorIndex(ctx, "e"), db.ErrNotFound, `"e"`)
		failIf(t, need(c.Search(ctx, db.Query{From: "e", Vector: []float32{1, 2, 3}}))(t).Approximate,
			"approximate without an index")
		dbkit.CheckSound(t, d, name)
		dbkit.MustClose(t, d)
	}
}

// A training of an index that does not end leaves nothing: not if it is cancelled, and not if the
// process ends.
func TestIndexesThatAreNotCompleted(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 600, 48)
	fs := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fs}, indexedSchema)
	dbkit.PutAll(t, d, c, items)
	copied := vfs.NewMem()
	some, cancel := context.WithCancel(ctx)
	_, err := c.IndexVectors(some, db.IndexOptions{Progress: func(stage string, _, _ int64) {
		if stage == "measure" {
			fine(t, errOf(vfs.Clone(fs, copied, "db", "db")))
			cancel()
		}
	}})
	stopIf(t, !errors.Is(err, context.Canceled), "%v", err)
	all, err := dbkit.VectorIndexes(c)
	failIf(t, err != nil || len(all) != 0, "%+v, %v", all, err)
	dbkit.CheckSound(t, d, "cancelled")
	dbkit.MustClose(t, d)
	must(t, copied.Remove("db/LOCK"))
	d = dbkit.MustOpen(t, "db", &db.Options{FS: copied})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	eventually(t, "what was left is gone", func() bool {
		all, err := dbkit.VectorIndexes(c)
		return err == nil && len(all) == 0
	})
	dbkit.CheckSound(t, d, "opened again")
	need(c.IndexVectors(ctx, db.IndexOptions{}))(t)
	dbkit.CheckSound(t, d, "indexed")
}

// Searches, writes and trainings of an index do not disturb each other.
func TestIndexesInTheRace(t *testing.T) {
	t.Parallel()
	each := effort.Of(200, 100) // items of a writer
	items := embedded(t, 0, 600+3*each, 48)
	d, c := indexed(t, vfs.NewMem(), items[:600])
	defer dbkit.MustClose(t, d)
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range each {
				it := items[600+w*each+i]
				fine(t, errOf(c.Put(ctx, it)))
				if x := items[r.IntN(600)].Vectors["e"]; x != nil && slices.Max(x) > 0 {
					fine(t, errOf(c.Search(ctx, db.Query{From: "e", Vector: x})))
				}
				fine(t, errOf(c.Delete(ctx, items[r.IntN(600)].Key)))
			}
		})
	}
	wg.Go(func() {
		for range 3 {
			fine(t, errOf(c.IndexVectors(ctx, db.IndexOptions{})))
		}
	})
	wg.Wait()
	dbkit.CheckSound(t, d, "at rest")
}

// Where modalities share a space, an item is as near as the nearest of its vectors, whichever of them
// have an index.
func TestIndexesOfASharedSpace(t *testing.T) {
	effort.Slow(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 48},
		{Name: "text", Dim: 48, SpaceOf: "image"}}}))(t)
	images, texts := embedded(t, 0, 1500, 48), embedded(t, 7000, 1500, 48)
	var items []*db.Item
	for i := range images {
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{}}
		if x := images[i].Vectors["e"]; x != nil && i%5 != 0 {
			it.Vectors["image"] = x
		}
		if x := texts[i].Vectors["e"]; x != nil && i%3 != 0 {
			it.Vectors["text"] = x
		}
		items = append(items, it)
	}
	dbkit.PutAll(t, d, c, items)
	const asked = .95
	for _, modality := range []string{"", "text", "image"} {
		if modality != "" {
			need(c.IndexVectors(ctx, db.IndexOptions{Modality: modality}))(t)
		}
		for _, to := range []string{"", "image", "text"} {
			found, wanted, approximate := 0, 0, 0
			for _, of := range embedded(t, 1<<20, 60, 48) {
				x := of.Vectors["e"]
				if x == nil || slices.Max(x) == 0 {
					continue
				}
				q := db.Query{From: "text", To: to, Vector: x, Recall: 1}
				exact := need(c.Search(ctx, q))(t)
				q.Recall = asked
				r := need(c.Search(ctx, q))(t)
				if r.Approximate {
					approximate++
				}
				for _, h := range exact.Hits {
					wanted++
					if slices.ContainsFunc(r.Hits,
						func(o db.Hit) bool { return o.Row == h.Row && o.Similarity == h.Similarity }) {
						found++
					}
				}
			}
			// A promise of a mean is kept if it is missed by little in one set.
			got := float64(found) / float64(wanted)
			failIf(t, got < asked-.02 || approximate == 0 && got < 1,
				"with the index of %q, to %q: recall %v, %d answers by the index", modality, to, got,
				approximate)
			if by := modality == "image" || modality != "" && to != "image"; by != (approximate > 0) {
				t.Errorf("with the index of %q, to %q: %d answers by the index", modality, to, approximate)
			}
		}
	}
	dbkit.CheckSound(t, d, "indexed")
}

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
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()},
		db.Schema{Modalities: []db.Modality{{Name: "e", Dim: dim}}})
	defer d.Close()
	var items []*db.Item
	for i := range n {
		far := i%10 >= 7
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": vector(far)},
			Labels: []string{"near"}}
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
	explained := func(where string, recall float64) (*report.Explain, *db.Result) {
		q := db.Query{From: "e", Vector: items[0].Vectors["e"], K: 3, Where: where, Recall: recall}
		x, r := need2(dbkit.Explain(ctx, c, q, -1))(t)
		return x, r
	}
	exact := func(what string, x *report.Explain, r *db.Result, where string) {
		t.Helper()
		_, want := explained(where, 1)
		if x.Plan != "vectors" || r.Approximate || x.Recall != 0 ||
			!slices.Equal(keysOf(r.Hits), keysOf(want.Hits)) {
			t.Errorf("%s: plan %s, approximate %v, %v instead of %v", what, x.Plan, r.Approximate,
				keysOf(r.Hits), keysOf(want.Hits))
		}
	}

	x, r := explained("", .9)
	if x.Plan != "cells" || !r.Approximate || x.Predicted["cells"] == 0 ||
		x.Predicted["cells"] > x.Predicted["vectors"] {
		t.Errorf("without a filter: plan %s, approximate %v, predicted %v", x.Plan, r.Approximate,
			x.Predicted)
	}
	x, r = explained("label = 'rare'", .9)
	exact("few items", x, r, "label = 'rare'")
	failIf(t, x.Predicted["cells"] < x.Predicted["vectors"] || x.Abandoned,
		"few items: predicted %v, abandoned %v", x.Predicted, x.Abandoned)
	// All that is near is refused: cell after cell is looked into in vain.
	x, r = explained("label = 'far'", .2)
	exact("items that are far", x, r, "label = 'far'")
	failIf(t, !x.Abandoned || x.Probes == 0, "items that are far: predicted %v, abandoned %v after %d cells",
		x.Predicted, x.Abandoned, x.Probes)
}

// With a least similarity an index finds about as much of what reaches it as is asked for, however few
// that are, and looks into no cell twice.
func TestALeastSimilarityByAnIndex(t *testing.T) {
	dbkit.LongTest(t)
	items := embedded(t, 0, 2000, 48)
	for _, metric := range []db.Metric{db.Cosine, db.L2, db.Dot} {
		d, c := indexedBy(t, vfs.NewMem(), items, metric)
		defer d.Close()
		all := need(dbkit.VectorIndexes(c))(t)
		for _, least := range []float32{.4, .6, .9} {
			found, of := 0, 0
			for i := 0; i < 2000; i += 100 {
				q := db.Query{From: "e", Vector: items[i].Vectors["e"], K: 1500, MinSimilarity: least,
					Recall: 1}
				exact := need(c.Search(ctx, q))(t)
				q.Recall = .9
				x, r := need2(dbkit.Explain(ctx, c, q, -1))(t)
				if len(exact.Hits) < q.K &&
					(metric != db.Dot && x.Plan != "cells" || x.Probes > all[0].Cells) {
					t.Errorf("%s, %v: plan %s, %d cells of %d", metric, least, x.Plan, x.Probes, all[0].Cells)
				}
				found, of = found+len(r.Hits), of+len(exact.Hits)
			}
			failIf(t, of < 20 || float64(found) < .9*float64(of), "%s, at least %v: %d of %d", metric, least,
				found, of)
		}
	}
}

// Where vectors cannot be in memory each comparison reads one: then an index pays earlier.
func TestAnIndexPaysEarlierWithoutMemory(t *testing.T) {
	effort.Slow(t)
	was := cells.ExactCost
	cells.ExactCost = 125_000
	defer func() { cells.ExactCost = was }()
	items := embedded(t, 0, 2000, 48)
	fs := vfs.NewMem()
	d, c := indexed(t, fs, items)
	q := db.Query{From: "e", Vector: items[0].Vectors["e"], K: 3, Recall: .9}
	plan := func(want string) {
		t.Helper()
		x, _, err := dbkit.Explain(ctx, c, q, -1)
		failIf(t, err != nil || x.Plan != want, "plan %s, %v; want %s", x.Plan, err, want)
	}
	plan("vectors")
	d, _ = reopen(t, d, "db", &db.Options{FS: fs, RerankCacheBytes: -1})
	defer d.Close()
	c = need(d.Collection("main"))(t)
	plan("cells")
}

// A search sees what was written before, though the rows of filters are kept.
func TestFiltersFollowWrites(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, indexedSchema)
	defer d.Close()
	x := make([]float32, 48)
	x[0] = 1
	put := func(key string, year int64, labels ...string) {
		t.Helper()
		it := &db.Item{Key: key, Vectors: map[string][]float32{"e": x}, Labels: labels,
			Fields: map[string]any{"year": year}}
		need(c.Put(ctx, it))(t)
	}
	check := func(where string, args []any, want ...string) {
		t.Helper()
		for range 2 { // the second finds the rows of the first
			r := need(c.Search(ctx, db.Query{From: "e", Vector: x, K: 10, Where: where, Args: args}))(t)
			got := keysOf(r.Hits)
			failIf(t, !slices.Equal(got, want), "%s %v: %v, want %v", where, args, got, want)
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
	failIf(t, err != nil || len(r.Hits) != 0, "without itself: %v, %v", r, err)
	check("label = 'red'", nil, "c")
}

// Runs belong to their query as it was: the caller may use its vector for the next one meanwhile.
func TestRunsKeepTheVectorOfTheQuery(t *testing.T) {
	t.Parallel()
	_, c, _ := openTrained(t)
	items := dbkit.Pairs(2, synth.Config{Classes: 4, Seed: 1})
	x := slices.Clone(items[0].Vectors["text"])
	runs := func() *db.Runs { return need(c.SearchRadius(ctx, db.Query{From: "text", Vector: x}, 16))(t) }
	first := runs()
	defer first.Close()
	want := need(dbkit.Collect(first.Hits(ctx)))(t)
	second := runs()
	defer second.Close()
	var got []db.Hit
	for h := range every(t, second.Hits(ctx)) {
		copy(x, items[1].Vectors["text"])
		got = append(got, h)
	}
	if len(want) == 0 || !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
