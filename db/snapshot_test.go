package db

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// uses calls everything that reads a collection.
func uses(c *Collection) map[string]error {
	q := Query{Code: []byte{1, 2}}
	out := map[string]error{
		"search": second(c.Search(ctx, q)),
		"count":  second(c.Count()),
		"within": second(c.CountRadius(ctx, q, 3)),
		"get":    second(c.Get(ctx, "k1")),
		"labels": second(c.Labels()),
		"stats":  second(c.Stats()),
		"schema": second(c.Schema()),
	}
	_, _, out["explain"] = c.Explain(ctx, q, -1)
	_, out["neighbors"] = collect(c.Neighbors(ctx, q))
	for _, err := range c.Items(ctx) {
		if out["items"] = err; err != nil {
			break
		}
	}
	r, err := c.SearchRadius(ctx, q, 16)
	if out["radius"] = err; err == nil {
		_, out["hits"] = collect(r.Hits(ctx))
		out["first"] = second(r.First(ctx, 3))
		out["close"] = r.Close()
	}
	return out
}

func TestSnapshotIsReadOnlyUntilItIsClosed(t *testing.T) {
	d, c := openPairs(t)
	items := pairs(40, synth.Config{})
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 16}})
	s, err := d.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	then, err := s.Collection("main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collection("other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown collection: %v", err)
	}
	if _, err := d.CreateCollection(ctx, "other", Schema{Bits: 8}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collection("other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a later collection: %v", err)
	}
	b := d.NewBatch()
	for what, err := range map[string]error{
		"put":    second(then.Put(ctx, items[0])),
		"merge":  second(then.Merge(ctx, items[0])),
		"delete": second(then.Delete(ctx, "k1")),
		"train":  second(then.Train(ctx, TrainOptions{})),
		"batch":  b.Put(then, items[0]),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Everything goes on, and the snapshot stays.
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 24}})
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
	if n, err := then.CountRadius(ctx, Query{Code: []byte{1, 2}}, 16); n != 40 || err != nil {
		t.Errorf("%d items of 40, %v", n, err)
	}
	if n, err := c.CountRadius(ctx, Query{Code: []byte{1, 2, 3}}, 24); n != 37 || err != nil {
		t.Errorf("%d items of 37, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range uses(then) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed snapshot: %v", what, err)
		}
	}
	if _, err := s.Collection("main"); !errors.Is(err, ErrClosed) {
		t.Errorf("collection of a closed snapshot: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// Closing the database ends what is open, whichever plan has made it.
func TestCloseWithOpenSnapshotsAndRuns(t *testing.T) {
	fsys := vfs.NewMem()
	d := mustOpen(t, "db", &Options{FS: fsys})
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := c.Put(ctx, &Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i), byte(i >> 8)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Compact(ctx); err != nil { // so that files are read, too
		t.Fatal(err)
	}
	var all []*Runs
	var snapshots []*Snapshot
	for _, plan := range allPlans {
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		then, err := s.Collection("main")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Collection{c, then} {
			r, err := c.SearchRadius(ctx, Query{Code: []byte{1, 2}, Plan: plan}, 5)
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
	if hits, err := collect(all[1].Hits(ctx)); err != nil || len(hits) != all[1].Total() {
		t.Errorf("%d hits of %d, %v", len(hits), all[1].Total(), err)
	}
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, d)
	for i, r := range all {
		_, err := collect(r.Hits(ctx))
		for what, err := range map[string]error{"hits": err, "first": second(r.First(ctx, 1)), "close": r.Close()} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("runs %d, %s: %v", i, what, err)
			}
		}
		for _, err := range r.All(ctx) {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("runs %d go on: %v", i, err)
			}
		}
	}
	for _, s := range snapshots {
		if _, err := s.Collection("main"); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if err := s.Close(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := d.Snapshot(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := d.Compact(ctx); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	d = mustOpen(t, "db", &Options{FS: fsys})
	if n, err := mustCollection(t, d, "main").Count(); n != 300 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
	mustClose(t, d)
}

// Runs show what was there when they were made, to any number of goroutines.
func TestRunsStayAsTheyWere(t *testing.T) {
	d, c := openCoded(t, 16)
	var items []*Item
	for i := range 500 {
		items = append(items, &Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i % 7), byte(i % 5)}})
	}
	putAll(t, c, items)
	for _, plan := range allPlans {
		q := Query{Code: []byte{1, 1}, Plan: plan}
		runs, err := c.SearchRadius(ctx, q, 3)
		if err != nil {
			t.Fatal(err)
		}
		want, err := collect(runs.Hits(ctx))
		if err != nil || len(want) != runs.Total() || len(want) == 0 {
			t.Fatalf("%d hits of %d, %v", len(want), runs.Total(), err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 5 {
					if got, err := collect(runs.Hits(ctx)); err != nil || !sameHits(got, want) {
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
			if _, err := c.Put(ctx, &Item{Key: fmt.Sprint("k", 11*i), Code: []byte{255, byte(i)}}); err != nil {
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
	d, c := openPairs(t)
	items := pairs(300, synth.Config{Classes: 5, Noise: 2})
	putAll(t, c, items)
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 16, Anchors: 10}})
	codes, err := d.CreateCollection(ctx, "codes", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
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
	write(func(i int) error { return second(c.Put(ctx, items[(31*i)%300])) })
	write(func(i int) error { return second(c.Delete(ctx, items[(17*i)%300].Key)) })
	write(func(i int) error {
		b := d.NewBatch()
		for k := range 200 {
			n := 200*i + k
			b.Put(codes, &Item{Key: fmt.Sprint(n % 1500), Code: []byte{byte(n * 7), byte(n >> 3)}})
		}
		return b.Commit(ctx)
	})
	write(func(i int) error {
		if i%3 > 0 {
			return nil
		}
		views := []model.Views{model.ViewsTarget, model.ViewsShared}[i/3%2]
		return second(c.Train(ctx, TrainOptions{Options: model.Options{Bits: 16, Anchors: 10, Views: views}}))
	})
	write(func(i int) error {
		if i%3 > 0 {
			return nil
		}
		return d.Compact(ctx)
	})
	write(func(int) error {
		return second(State(d).Index(ctx, 0, func(_ *state.View, set *state.CodeSetView) *mih.Build {
			if set.Collection != Inside(codes).ID {
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
		q := Query{Code: []byte{byte(i), byte(i >> 4)}, K: 20, Plan: allPlans[i%len(allPlans)]}
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
		for _, plan := range allPlans {
			n, err := then.CountRadius(ctx, Query{Code: code, Plan: plan}, 4)
			if err != nil || n != want {
				return fmt.Errorf("plan %v: %d within 4, want %d: %w", plan, n, want, err)
			}
		}
		return nil
	})
	read(func(i int) error {
		q := Query{From: "image", To: "text", Vector: items[i%300].Vectors["image"], Plan: allPlans[i%len(allPlans)]}
		runs, err := c.SearchRadius(ctx, q, 6)
		if err != nil {
			return err
		}
		defer runs.Close()
		hits, err := collect(runs.Hits(ctx))
		if err != nil || len(hits) != runs.Total() {
			return fmt.Errorf("%d hits of %d: %w", len(hits), runs.Total(), err)
		}
		return nil
	})
	read(func(i int) error {
		n := 0
		for _, err := range c.Neighbors(ctx, Query{From: "text", Vector: items[i%300].Vectors["text"], To: "image"}) {
			if err != nil {
				return err
			}
			if n++; n == 70 {
				break
			}
		}
		return second(d.Stats())
	})
	writers.Wait()
	close(stop)
	readers.Wait()
	mustClose(t, d)
}

// A context that has ended ends every search, and is what it returns.
func TestCancelledSearches(t *testing.T) {
	d, c := openCoded(t, 16)
	putAll(t, c, []*Item{{Key: "a", Code: []byte{1, 2}}, {Key: "b", Code: []byte{1, 3}}})
	runs, err := c.SearchRadius(ctx, Query{Code: []byte{1, 2}}, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, plan := range allPlans {
		q := Query{Code: []byte{1, 2}, Plan: plan}
		_, _, explained := c.Explain(cctx, q, -1)
		_, neighbors := collect(c.Neighbors(cctx, q))
		for what, err := range map[string]error{
			"search": second(c.Search(cctx, q)), "radius": second(c.SearchRadius(cctx, q, 3)),
			"count": second(c.CountRadius(cctx, q, 3)), "explain": explained, "neighbors": neighbors,
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, plan %v: %v", what, plan, err)
			}
		}
	}
	_, err = collect(runs.Hits(cctx))
	for what, err := range map[string]error{"hits": err, "first": second(runs.First(cctx, 1)), "compact": d.Compact(cctx)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
