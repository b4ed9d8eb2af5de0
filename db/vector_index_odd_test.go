package db_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A row that gains a vector while an index takes rows in is found afterwards.
func TestVectorsThatComeDuringAFold(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", indexedSchema))(t)
	items := embedded(t, 0, effort.Of(4000, 1500), 48)
	first := slices.Clone(items)
	for i, it := range items {
		if i%3 == 0 {
			first[i] = &db.Item{Key: it.Key, Fields: it.Fields}
		}
	}
	dbkit.PutAll(t, d, c, first)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for i := 0; i < len(items); i += 3 {
			select {
			case <-stop:
				return
			default:
			}
			if items[i].Vectors == nil {
				continue
			}
			fine(t, errOf(c.Merge(ctx, &db.Item{Key: items[i].Key, Vectors: items[i].Vectors})))
		}
	})
	some, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fine(t, errOf(c.IndexVectors(some, db.IndexOptions{})))
	close(stop)
	wg.Wait()
	dbkit.CheckSound(t, d, "vectors came meanwhile")
}

// A row whose vector changes again while an index takes it in is found by its last vector.
func TestVectorsThatChangeDuringAFold(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 300, 48)
	d, c := indexed(t, vfs.NewMem(), items)
	defer dbkit.MustClose(t, d)
	put := func(vector int) {
		t.Helper()
		need(c.Put(ctx, &db.Item{Key: "k0", Vectors: items[vector].Vectors, Fields: items[0].Fields}))(t)
	}
	put(100)
	held, ended := heldIn("readMerge"), make(chan error)
	go func() {
		_, err := db.State(d).TakeIn(held, db.Inside(c).ID, 1, 1, 100)
		ended <- err
	}()
	<-held.there
	put(200)
	close(held.goOn)
	fine(t, <-ended)
	hits := answer(t, c, db.Query{From: "e", Vector: items[200].Vectors["e"], K: 2}).Hits
	failIf(t, !slices.ContainsFunc(hits, func(h db.Hit) bool { return h.Key == "k0" }), "found %v",
		keysOf(hits))
	dbkit.CheckSound(t, d, "taken in")
}

// An index is not used for another metric than that it was made for.
func TestAnIndexOfAnotherMetric(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 1000, 48)
	d, c := indexed(t, vfs.NewMem(), items)
	defer dbkit.MustClose(t, d)
	q := db.Query{From: "e", Vector: items[7].Vectors["e"]}
	stopIf(t, !answer(t, c, q).Approximate, "the index is not used")
	mustAlter(t, c, db.Alteration{Metrics: map[string]db.Metric{"e": db.L2}})
	failIf(t, answer(t, c, q).Approximate, "an index for cosines is used for l2")
}

// Where half of the vectors have come, changed or gone, and no process that writes has made the index anew
// yet, answers compare all: what was measured does not hold any more.
func TestAnOutgrownIndexIsNotUsed(t *testing.T) {
	t.Parallel()
	items := embedded(t, 0, 300, 48)
	for churn, used := range map[int]bool{1000: true, 2000: false} {
		fs := vfs.NewMem()
		d, c := indexed(t, fs, items)
		v := db.State(d).Latest()
		cv, _ := v.Collections.Get(db.Inside(c).ID)
		x := *cv.Indexes[0].VectorIndex
		v.Release()
		x.Churn = churn
		b := need(x.Encode())(t)
		keyValue{codec.NumberKey(codec.KindIndex, db.Inside(c).ID, x.ID), b}.put(t, d)
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: fs, ReadOnly: true, MustExist: true})
		c = dbkit.MustCollection(t, d, "main")
		explain, r, err := c.Explain(ctx, db.Query{From: "e", Vector: items[7].Vectors["e"]}, -1)
		if err != nil || r.Approximate != used || slices.Equal(explain.OutgrownIndexes,
			[]string{"e"}) == used {
			t.Errorf("%d of %d vectors have changed: the index is used: %v; %+v, %v", churn, len(items),
				r.Approximate, explain, err)
		}
		if all, err := c.VectorIndexes(); err != nil || len(all) != 1 || all[0].Outgrown == used {
			t.Errorf("%d of %d vectors have changed: %+v, %v", churn, len(items), all, err)
		}
		dbkit.MustClose(t, d)
	}
}

// oddItems returns items whose vectors fit no cell of an index of embedded ones.
func oddItems(n int) (odd []*db.Item) {
	for i := range n {
		x := make([]float32, 48)
		x[i%2], x[2+i%40] = -1, .1
		odd = append(odd, &db.Item{Key: fmt.Sprint("odd", i), Vectors: map[string][]float32{"e": x}})
	}
	return odd
}

// Vectors that fit no cell do not have an index made anew the sooner, the more processes find that.
func TestLooseVectorsOfManyProcesses(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	d, c := indexed(t, fs, embedded(t, 0, 300, 48))
	odd := oddItems(100)
	putAll(t, c, odd)
	for range 8 { // 800 would be more than it has
		need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, len(odd)))(t)
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
		c = dbkit.MustCollection(t, d, "main")
	}
	defer dbkit.MustClose(t, d)
	all, err := c.VectorIndexes()
	failIf(t, err != nil || len(all) != 1 || all[0].Index != 1, "the index was made anew: %v, %v", all, err)
}

// Vectors that fit no cell are counted as loose until they go.
func TestLooseVectorsThatGo(t *testing.T) {
	t.Parallel()
	d, c := indexed(t, vfs.NewMem(), embedded(t, 0, 300, 48))
	defer dbkit.MustClose(t, d)
	odd := oddItems(100)
	var keys []string
	for _, it := range odd {
		keys = append(keys, it.Key)
	}
	putAll(t, c, odd)
	need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, len(odd)))(t)
	loose := func() int {
		all, err := c.VectorIndexes()
		stopIf(t, err != nil || len(all) != 1, "%v, %v", all, err)
		return all[0].Loose
	}
	n := loose()
	failIf(t, n != len(odd), "%d vectors of another kind have come, %d are loose", len(odd), n)
	need(c.Delete(ctx, keys...))(t)
	n = loose()
	failIf(t, n != 0, "they have gone, and %d are loose", n)
}

// A database that is opened again knows how much its cells had taken on when their promises were found:
// vectors like theirs fit, and more of them than an eighth do not.
func TestCellsAreOverfullAfterOpening(t *testing.T) {
	effort.Slow(t)
	fs := vfs.NewMem()
	items := embedded(t, 0, 2000, 48)
	d, _ := indexed(t, fs, items)
	for i, few := range []bool{true, false} {
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
		c := dbkit.MustCollection(t, d, "main")
		n := map[bool]int{true: 20, false: 400}[few]
		var more []*db.Item
		for j := range n {
			more = append(more, &db.Item{Key: fmt.Sprint("more", i, "-", j), Vectors: items[j%40].Vectors})
		}
		putAll(t, c, more)
		need(db.State(d).TakeIn(ctx, db.Inside(c).ID, 1, 1, n))(t)
		if all, err := c.VectorIndexes(); err != nil || few != (all[0].Loose < n/2) {
			t.Errorf("%d vectors like some have come, %d are loose, %v", n, all[0].Loose, err)
		}
	}
	dbkit.MustClose(t, d)
}

// An index is made while writers keep coming.
func TestAnIndexIsMadeUnderWrites(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", indexedSchema))(t)
	items := embedded(t, 0, effort.Of(2000, 1000), 48)
	dbkit.PutAll(t, d, c, items)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 16 {
		wg.Go(func() {
			for i := w; ; i += 16 {
				select {
				case <-stop:
					return
				default:
				}
				it := *items[i%len(items)]
				if _, err := c.Put(ctx, &it); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	_, err := c.IndexVectors(ctx, db.IndexOptions{})
	close(stop)
	wg.Wait()
	fine(t, err)
	dbkit.CheckSound(t, d, "made")
}

// Pages go on behind items that are as near as each other, until nothing is left.
func TestPagesOfAnIndexEndAtTheEnd(t *testing.T) {
	dbkit.LongTest(t)
	for _, equal := range []int{0, 1, 100, 700} {
		items := embedded(t, 0, 1400, 48)
		x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
		for i := range equal {
			items[2*i].Vectors = map[string][]float32{"e": x}
		}
		want := 0
		for _, it := range items {
			if it.Vectors != nil {
				want++
			}
		}
		d, c := indexed(t, vfs.NewMem(), items)
		for _, k := range []int{7, 50} {
			seen := map[string]bool{}
			q := db.Query{From: "e", Vector: x, K: k}
			for {
				r := answer(t, c, q)
				for _, h := range r.Hits {
					stopIf(t, seen[h.Key], "%q comes twice", h.Key)
					seen[h.Key] = true
				}
				if q.After = r.Next; r.Next == "" {
					break
				}
			}
			if len(seen) < want*95/100 { // a page may lack some, and the next one goes on behind it
				t.Errorf("%d equal, pages of %d: they end behind %d of %d items", equal, k, len(seen), want)
			}
		}
		dbkit.MustClose(t, d)
	}
}

// A search that waits for an index to be loaded hears what becomes of it when that is dropped.
func TestAnIndexIsDroppedWhileItIsLoaded(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	d, _ := indexed(t, fs, embedded(t, 0, 12_000, 48)) // more than are loaded before Open returns
	dbkit.MustClose(t, d)
	x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
	for range 5 {
		copied := vfs.NewMem()
		need(vfs.Clone(fs, copied, "db", "db"))(t)
		_ = copied.Remove("db/LOCK")
		d := dbkit.MustOpen(t, "db", &db.Options{FS: copied})
		c := dbkit.MustCollection(t, d, "main")
		var wg sync.WaitGroup
		begun := make(chan struct{}, 3)
		for range 3 {
			wg.Go(func() {
				begun <- struct{}{}
				defer func() {
					p := recover()
					failIf(t, p != nil, "panic: %v", p)
				}()
				if _, err := c.Search(ctx, db.Query{From: "e", Vector: x}); err != nil {
					t.Log(err)
				}
			})
		}
		for range 3 {
			<-begun
		}
		fine(t, c.DropVectorIndex(ctx, "e"))
		wg.Wait()
		dbkit.MustClose(t, d)
	}
}

// However large vectors are, what is stored of an index can be read again, and finds them.
func TestIndexesOfLargeVectors(t *testing.T) {
	dbkit.LongTest(t)
	for _, metric := range []db.Metric{db.Cosine, db.Dot, db.L2} {
		for _, scale := range []float32{1e-30, 1, 1e15, 1e19, 1e25, 1e37} {
			items := embedded(t, 0, 500, 48)
			x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
			for i, it := range items {
				if i%50 == 11 || i%50 == 13 {
					it.Vectors = nil
				}
				for j := range it.Vectors["e"] {
					it.Vectors["e"][j] *= scale
				}
			}
			for j := range x {
				x[j] *= scale
			}
			name := fmt.Sprintf("%s of %g", metric, scale)
			fs := vfs.NewMem()
			d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
			schema := indexedSchema
			schema.Modalities = []db.Modality{{Name: "e", Dim: 48, Metric: metric}}
			c := need(d.CreateCollection(ctx, "main", schema))(t)
			dbkit.PutAll(t, d, c, items)
			some, cancel := context.WithTimeout(ctx, 30*time.Second)
			_, err := c.IndexVectors(some, db.IndexOptions{Cells: 16})
			cancel()
			if err != nil {
				t.Errorf("%s: %v", name, err)
				dbkit.MustClose(t, d)
				continue
			}
			findings, _ := dbkit.Findings(t, d, db.VerifyOptions{Deep: true})
			if len(findings) > 0 {
				t.Errorf("%s: %d findings, such as %v", name, len(findings), findings[0])
			}
			dbkit.MustClose(t, d)
			d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
			c = dbkit.MustCollection(t, d, "main")
			exact := answer(t, c, db.Query{From: "e", Vector: x, Recall: 1, K: 20})
			r, err := c.Search(ctx, db.Query{From: "e", Vector: x, K: 20})
			if err != nil {
				t.Errorf("%s: opened again: %v", name, err)
			} else if found := shared(exact.Hits, r.Hits); found < 18 {
				t.Errorf("%s: %d of 20 are found, approximate: %v", name, found, r.Approximate)
			}
			dbkit.MustClose(t, d)
		}
	}
}

// One vector that is out of all proportion does not keep an index from being read.
func TestAnIndexWithOneLargeVector(t *testing.T) {
	dbkit.LongTest(t)
	for _, metric := range []db.Metric{db.Dot, db.L2} {
		items := embedded(t, 0, 500, 48)
		for i, it := range items {
			if i%50 == 11 || i%50 == 13 {
				it.Vectors = nil
			}
		}
		x := embedded(t, 1<<20, 1, 48)[0].Vectors["e"]
		fs := vfs.NewMem()
		d, c := indexedBy(t, fs, items, metric)
		long := make([]float32, 48)
		for i := range long {
			long[i] = 3e38
		}
		need(c.Put(ctx, &db.Item{Key: "long", Vectors: map[string][]float32{"e": long}}))(t)
		dbkit.PutAll(t, d, c, embedded(t, 2000, 600, 48)[20:580]) // so that it is taken in
		eventually(t, "merged", func() bool {
			all, err := c.VectorIndexes()
			return err == nil && all[0].Unknown < 512
		})
		dbkit.CheckSound(t, d, string(metric))
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
		c = dbkit.MustCollection(t, d, "main")
		for _, x := range [][]float32{x, long} {
			fine(t, errOf(c.Search(ctx, db.Query{From: "e", Vector: x, K: 20})), metric, "opened again")
		}
		dbkit.MustClose(t, d)
	}
}

func shared(a, b []db.Hit) (n int) {
	for _, h := range a {
		if slices.ContainsFunc(b, func(o db.Hit) bool { return o.Row == h.Row }) {
			n++
		}
	}
	return n
}

// Indexes come to rest, whatever their vectors are.
func TestIndexesComeToRest(t *testing.T) {
	dbkit.LongTest(t)
	rng := rand.New(rand.NewPCG(1, 2))
	base := make([]float32, 48)
	for i := range base {
		base[i] = float32(rng.NormFloat64())
	}
	for name, vector := range map[string]func(i int) []float32{
		"outliers": func(i int) []float32 {
			x := slices.Clone(base)
			if i%100 == 7 {
				for j := range x {
					x[j] = float32(rng.NormFloat64()) * 5
				}
			}
			return x
		},
		"last bit": func(i int) []float32 {
			x := slices.Clone(base)
			x[i%48] = math.Nextafter32(x[i%48], 100)
			return x
		},
		"far": func(i int) []float32 {
			x := slices.Clone(base)
			for j := range x {
				x[j] += 1e6 + float32(rng.NormFloat64())*.2
			}
			return x
		},
		"long tail": func(i int) []float32 {
			x := slices.Clone(base)
			s := float32(math.Exp(rng.NormFloat64() * 4))
			for j := range x {
				x[j] *= s
			}
			return x
		},
	} {
		for _, metric := range []db.Metric{db.Cosine, db.L2, db.Dot} {
			make := func(from, n int) (items []*db.Item) {
				for i := from; i < from+n; i++ {
					items = append(items, &db.Item{Key: fmt.Sprint(i),
						Vectors: map[string][]float32{"e": vector(i)},
						Fields:  map[string]any{"year": int64(1)}})
				}
				return items
			}
			d, c := indexedBy(t, vfs.NewMem(), make(0, 100), metric)
			dbkit.PutAll(t, d, c, make(100, 1100))
			stats := func() (int, int64, int) {
				all := need(c.VectorIndexes())(t)
				s := need(d.Stats())(t)
				return all[0].Unknown, int64(s.Sequence), all[0].Cells
			}
			eventually(t, "merged", func() bool { n, _, _ := stats(); return n < 512 })
			// The indexer ends an operation when it has nothing left to do with an index.
			eventually(t, "the indexer rests", func() bool {
				a := need(d.Stats())(t)
				return !slices.ContainsFunc(a.Activity.Running,
					func(o event.RunningOperation) bool { return o.Op == event.OpIndex })
			})
			_, commits, cells := stats()
			t.Logf("%s by %s: %d cells, %d commits", name, metric, cells, commits)
			failIf(t, commits > 200, "%s by %s: %d cells, %d commits", name, metric, cells, commits)
			dbkit.MustClose(t, d)
		}
	}
}

// One index of a modality is made at a time.
func TestOneIndexAtATime(t *testing.T) {
	t.Parallel()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", indexedSchema))(t)
	dbkit.PutAll(t, d, c, embedded(t, 0, 500, 48))
	second := error(nil)
	need(c.IndexVectors(ctx, db.IndexOptions{Progress: func(stage string, _, _ int64) {
		if stage == "measure" {
			_, second = c.IndexVectors(ctx, db.IndexOptions{})
		}
	}}))(t)
	errorIs(t, second, db.ErrBusy, `"e"`, "wait")
	dbkit.CheckSound(t, d, "one made")
}

// An index that cannot be read is told by Explain and Stats, and searches compare all vectors until it
// is made anew.
func TestDamagedIndexIsTold(t *testing.T) {
	effort.Slow(t)
	fsys, items := vfs.NewMem(), embedded(t, 0, 3000, 48)
	d, _ := indexed(t, fsys, items)
	for key := range storeKeys(t, d) {
		if key[0] == codec.KindEntries {
			must(t, db.State(d).Engine.DB.Set(key, []byte("garbage"), nil))
		}
	}
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer dbkit.MustClose(t, d)
	c := dbkit.MustCollection(t, d, "main")
	q := db.Query{From: "e", Vector: items[5].Vectors["e"], K: 10}
	explain, found, err := c.Explain(ctx, q, -1)
	failIf(t, err != nil || found.Approximate || len(found.Hits) != 10 || explain.Plan != "vectors" ||
		!slices.Equal(explain.DamagedIndexes, []string{"e"}), "%+v, %v, %v", explain, found, err)
	if s, err := c.Stats(); err != nil || !strings.Contains(s.VectorIndexes[0].Damage, "corruption found") {
		t.Errorf("%+v, %v", s.VectorIndexes, err)
	}
	need(c.IndexVectors(ctx, db.IndexOptions{}))(t)
	explain, _, err = c.Explain(ctx, q, -1)
	failIf(t, err != nil || explain.Plan != "cells" || explain.DamagedIndexes != nil, "made anew: %+v, %v",
		explain, err)
	if s, err := c.Stats(); err != nil || s.VectorIndexes[0].Damage != "" {
		t.Errorf("%+v, %v", s.VectorIndexes, err)
	}
}
