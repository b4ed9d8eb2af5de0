package db_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

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
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: dim}}})
	if err != nil {
		t.Fatal(err)
	}
	dbkit.PutAll(t, d, c, items[:n])
	for seed := range uint64(2) { // the second space stands by
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 6, Seed: seed, Sweeps: 1}})
	}
	dbkit.MustClose(t, d)
	for budget := int64(8_000); budget < 560_000; budget = budget*int64(effort.Of(9, 36))/8 + 1000 {
		fs := vfs.NewMem()
		if _, err := vfs.Clone(origin, fs, "db", "db"); err != nil {
			t.Fatal(err)
		}
		var loaded atomic.Int64 // items
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, RerankCacheBytes: budget, NoSync: true, EventListener: func(_ context.Context, e *event.Event) {
			if e.Op == event.OpRerank && e.Phase == event.PhaseDone {
				loaded.Add(e.Items)
			}
		}})
		c := dbkit.MustCollection(t, d, "main")
		if _, err := c.Search(ctx, db.Query{From: "image", Vector: items[3].Vectors["image"]}); err != nil {
			t.Fatal(err)
		}
		// wait fails if it does not end: the limit is no measure of speed.
		wait := func(when string) int64 {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			if err := d.WaitForIndex(limited); err != nil {
				t.Fatalf("budget %d, %s: %v", budget, when, err)
			}
			return dbkit.MustStats(t, d).Collections[0].RerankBytes
		}
		if bytes := wait("after opening"); bytes > budget || bytes == 0 && budget > 64_000 {
			t.Errorf("budget %d: %d bytes after opening", budget, bytes)
		}
		before := loaded.Load()
		for _, it := range items[n:] {
			if _, err := c.Put(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		bytes := wait("after writes")
		if most := budget + 4096; bytes > most { // as one commit may go beyond it
			t.Errorf("budget %d: %d bytes after writes", budget, bytes)
		}
		// What is given back is an eighth of the budget at a time, so that it comes in as seldom.
		if again := loaded.Load() - before; again > 6*n {
			t.Errorf("budget %d: %d items loaded while 600 were written", budget, again)
		}
		checkSpaces(t, d)
		dbkit.MustClose(t, d)
	}
}

// A cursor says that something follows, with a least similarity, too.
func TestNothingFollowsTheLastHit(t *testing.T) {
	c, items := openMixed(t, 16)
	for _, least := range []float32{.5, .9, .999, 1} {
		for k := range 60 {
			q := db.Query{From: "image", Vector: items[0].Vectors["image"], K: k + 1, Rerank: db.RerankProjection, MinSimilarity: least}
			res, err := c.Search(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
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
	t.Parallel()
	const n, budget = 4000, 40_000
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), RerankCacheBytes: budget, NoSync: true})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	item := func(i int) *db.Item {
		return &db.Item{Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(i % 2)}, Vectors: map[string][]float32{"image": {float32(i % 2), float32(i % 13), float32(i % 7), 1}}}
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
			if _, err := c.Put(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.WaitForIndex(ctx); err != nil {
			t.Fatal(err)
		}
		if got := dbkit.MustStats(t, d).Collections[0].RerankBytes; got > budget {
			t.Errorf("%d bytes of %d", got, budget)
		}
	}
	checkSpaces(t, d)
}
