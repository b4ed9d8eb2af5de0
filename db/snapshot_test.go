package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/mih"
)

// uses calls everything that reads a collection.
func uses(c *db.Collection) map[string]error {
	q := db.Query{Code: []byte{1, 2}}
	out := map[string]error{
		"search": dbkit.Second(c.Search(ctx, q)),
		"count":  dbkit.Second(c.Count()),
		"within": dbkit.Second(c.CountRadius(ctx, q, 3)),
		"get":    dbkit.Second(c.Get(ctx, "k1")),
		"labels": dbkit.Second(c.Labels()),
		"stats":  dbkit.Second(c.Stats()),
		"schema": dbkit.Second(c.Schema()),
	}
	_, _, out["explain"] = c.Explain(ctx, q, -1)
	_, out["neighbors"] = dbkit.Collect(c.Neighbors(ctx, q))
	for _, err := range c.Items(ctx) {
		if out["items"] = err; err != nil {
			break
		}
	}
	r, err := c.SearchRadius(ctx, q, 16)
	if out["radius"] = err; err == nil {
		_, out["hits"] = dbkit.Collect(r.Hits(ctx))
		out["first"] = dbkit.Second(r.First(ctx, 3))
		out["close"] = r.Close()
	}
	return out
}

func TestSnapshotIsReadOnlyUntilItIsClosed(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	then, err := s.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collection("other"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("an unknown collection: %v", err)
	}
	if _, err := d.CreateCollection(ctx, "other", db.Schema{Bits: 8}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collection("other"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a later collection: %v", err)
	}
	b := d.NewBatch()
	for what, err := range map[string]error{
		"put":    dbkit.Second(then.Put(ctx, items[0])),
		"merge":  dbkit.Second(then.Merge(ctx, items[0])),
		"delete": dbkit.Second(then.Delete(ctx, "k1")),
		"train":  dbkit.Second(then.Train(ctx, db.TrainOptions{})),
		"batch":  b.Put(then, items[0]),
	} {
		if !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Everything goes on, and the snapshot stays.
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24}})
	if _, err := c.Delete(ctx, "k1", "k2", "k3"); err != nil {
		t.Fatal(err)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	for what, err := range uses(then) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n, err := then.CountRadius(ctx, db.Query{Code: []byte{1, 2}}, 16); n != 40 || err != nil {
		t.Errorf("%d items of 40, %v", n, err)
	}
	if n, err := c.CountRadius(ctx, db.Query{Code: []byte{1, 2, 3}}, 24); n != 37 || err != nil {
		t.Errorf("%d items of 37, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range uses(then) {
		if !errors.Is(err, db.ErrClosed) {
			t.Errorf("%s of a closed snapshot: %v", what, err)
		}
	}
	if _, err := s.Collection("main"); !errors.Is(err, db.ErrClosed) {
		t.Errorf("collection of a closed snapshot: %v", err)
	}
	if err := s.Close(); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// Closing the database ends what is open, whichever plan has made it.
func TestCloseWithOpenSnapshotsAndRuns(t *testing.T) {
	fsys := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i), byte(i >> 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Compact(ctx); err != nil { // so that files are read, too
		t.Fatal(err)
	}
	var all []*db.Runs
	var snapshots []*db.Snapshot
	for _, plan := range dbkit.AllPlans {
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		then, err := s.Collection("main")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*db.Collection{c, then} {
			r, err := c.SearchRadius(ctx, db.Query{Code: []byte{1, 2}, Plan: plan}, 5)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		snapshots = append(snapshots, s)
	}
	// Runs are good without their snapshot.
	if err := snapshots[0].Close(); err != nil {
		t.Fatal(err)
	}
	if hits, err := dbkit.Collect(all[1].Hits(ctx)); err != nil || len(hits) != all[1].Total() {
		t.Errorf("%d hits of %d, %v", len(hits), all[1].Total(), err)
	}
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, d)
	for i, r := range all {
		_, err := dbkit.Collect(r.Hits(ctx))
		for what, err := range map[string]error{"hits": err, "first": dbkit.Second(r.First(ctx, 1)), "close": r.Close()} {
			if !errors.Is(err, db.ErrClosed) {
				t.Errorf("runs %d, %s: %v", i, what, err)
			}
		}
		for _, err := range r.All(ctx) {
			if !errors.Is(err, db.ErrClosed) {
				t.Errorf("runs %d go on: %v", i, err)
			}
		}
	}
	for _, s := range snapshots {
		if _, err := s.Collection("main"); !errors.Is(err, db.ErrClosed) {
			t.Error(err)
		}
		if err := s.Close(); !errors.Is(err, db.ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := d.Snapshot(); !errors.Is(err, db.ErrClosed) {
		t.Error(err)
	}
	if err := d.Compact(ctx); !errors.Is(err, db.ErrClosed) {
		t.Error(err)
	}
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	if n, err := dbkit.MustCollection(t, d, "main").Count(); n != 300 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
	dbkit.MustClose(t, d)
}

// Runs show what was there when they were made, to any number of goroutines.
func TestRunsStayAsTheyWere(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 16)
	var items []*db.Item
	for i := range 500 {
		items = append(items, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i % 7), byte(i % 5)}})
	}
	putAll(t, c, items)
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 1}, Plan: plan}
		runs, err := c.SearchRadius(ctx, q, 3)
		if err != nil {
			t.Fatal(err)
		}
		want, err := dbkit.Collect(runs.Hits(ctx))
		if err != nil || len(want) != runs.Total() || len(want) == 0 {
			t.Fatalf("%d hits of %d, %v", len(want), runs.Total(), err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 5 {
					if got, err := dbkit.Collect(runs.Hits(ctx)); err != nil || !oracle.SameHits(got, want) {
						t.Errorf("plan %v: %d hits, want %d, %v", plan, len(got), len(want), err)
					}
					rows := 0
					for run, err := range runs.All(ctx) {
						if err != nil {
							t.Errorf("plan %v: %v", plan, err)
						}
						rows += len(run.Rows)
					}
					if rows != len(want) {
						t.Errorf("plan %v: %d rows, want %d", plan, rows, len(want))
					}
				}
			})
		}
		for i := range 40 {
			if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint("k", 11*i), Code: []byte{255, byte(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Delete(ctx, "k2", "k3", "k5"); err != nil {
			t.Fatal(err)
		}
		if err := d.Compact(ctx); err != nil {
			t.Fatal(err)
		}
		putAll(t, c, items)
		wg.Wait()
		if err := runs.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Readers of all kinds, writers, trainings, builds of indexes and compactions
// go on together, and no answer contradicts itself or its snapshot.
func TestSearchesDuringEverything(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Classes: 5, Noise: 2})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	rounds := effort.Of(12, 4)
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	write := func(f func(i int) error) {
		writers.Go(func() {
			for i := range rounds {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	write(func(i int) error { return dbkit.Second(c.Put(ctx, items[(31*i)%300])) })
	write(func(i int) error { return dbkit.Second(c.Delete(ctx, items[(17*i)%300].Key)) })
	write(func(i int) error {
		b := d.NewBatch()
		for k := range 200 {
			n := 200*i + k
			b.Put(codes, &db.Item{Key: fmt.Sprint(n % 1500), Code: []byte{byte(n * 7), byte(n >> 3)}})
		}
		return b.Commit(ctx)
	})
	write(func(i int) error {
		if i%3 > 0 {
			return nil
		}
		return dbkit.Second(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}))
	})
	write(func(i int) error {
		if i%3 > 0 {
			return nil
		}
		return d.Compact(ctx)
	})
	write(func(int) error {
		return dbkit.Second(db.State(d).Index(ctx, 0, func(_ *state.View, set *state.CodeSetView) *mih.Build {
			if set.Collection != db.Inside(codes).ID {
				return nil
			}
			return set.Table.Rebuild()
		}))
	})
	read := func(f func(i int) error) {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	read(func(i int) error {
		q := db.Query{Code: []byte{byte(i), byte(i >> 4)}, K: 20, Plan: dbkit.AllPlans[i%len(dbkit.AllPlans)]}
		res, err := codes.Search(ctx, q)
		if err != nil {
			return err
		}
		last := 0
		seen := map[string]bool{}
		for _, h := range res.Hits {
			if h.Distance < last || seen[h.Key] {
				return fmt.Errorf("%v: out of order, or twice: %v", q.Plan, res.Hits)
			}
			last, seen[h.Key] = h.Distance, true
		}
		return nil
	})
	read(func(i int) error {
		s, err := d.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		then, err := s.Collection("codes")
		if err != nil {
			return err
		}
		code := []byte{byte(3 * i), byte(i)}
		want := 0
		for it, err := range then.Items(ctx) {
			if err != nil {
				return err
			}
			if bits.OnesCount8(it.Code[0]^code[0])+bits.OnesCount8(it.Code[1]^code[1]) <= 4 {
				want++
			}
		}
		for _, plan := range dbkit.AllPlans {
			n, err := then.CountRadius(ctx, db.Query{Code: code, Plan: plan}, 4)
			if err != nil || n != want {
				return fmt.Errorf("plan %v: %d within 4, want %d: %w", plan, n, want, err)
			}
		}
		return nil
	})
	read(func(i int) error {
		q := db.Query{From: "image", To: "text", Vector: items[i%300].Vectors["image"], Plan: dbkit.AllPlans[i%len(dbkit.AllPlans)]}
		runs, err := c.SearchRadius(ctx, q, 6)
		if err != nil {
			return err
		}
		defer runs.Close()
		hits, err := dbkit.Collect(runs.Hits(ctx))
		if err != nil || len(hits) != runs.Total() {
			return fmt.Errorf("%d hits of %d: %w", len(hits), runs.Total(), err)
		}
		return nil
	})
	read(func(i int) error {
		n := 0
		for _, err := range c.Neighbors(ctx, db.Query{From: "text", Vector: items[i%300].Vectors["text"], To: "image"}) {
			if err != nil {
				return err
			}
			if n++; n == 70 {
				break
			}
		}
		return dbkit.Second(d.Stats())
	})
	writers.Wait()
	close(stop)
	readers.Wait()
	dbkit.MustClose(t, d)
}

// A context that has ended ends every search, and is what it returns.
func TestCancelledSearches(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1, 2}}, {Key: "b", Code: []byte{1, 3}}})
	runs, err := c.SearchRadius(ctx, db.Query{Code: []byte{1, 2}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 2}, Plan: plan}
		_, _, explained := c.Explain(cctx, q, -1)
		_, neighbors := dbkit.Collect(c.Neighbors(cctx, q))
		for what, err := range map[string]error{
			"search": dbkit.Second(c.Search(cctx, q)), "radius": dbkit.Second(c.SearchRadius(cctx, q, 3)),
			"count": dbkit.Second(c.CountRadius(cctx, q, 3)), "explain": explained, "neighbors": neighbors,
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, plan %v: %v", what, plan, err)
			}
		}
	}
	_, err = dbkit.Collect(runs.Hits(cctx))
	for what, err := range map[string]error{"hits": err, "first": dbkit.Second(runs.First(cctx, 1)), "compact": d.Compact(cctx)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
