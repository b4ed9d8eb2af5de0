package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// uses calls everything that reads a collection.
func uses(c *db.Collection) map[string]error {
	q := db.Query{Code: []byte{1, 2}}
	out := map[string]error{
		"search": errOf(c.Search(ctx, q)),
		"count":  errOf(c.Count(context.Background(), "")),
		"get":    errOf(c.Get(ctx, "k1")),
		"labels": errOf(c.Labels()),
		"stats":  errOf(c.Stats()),
		"schema": errOf(c.Schema()),
	}
	_, _, out["explain"] = c.Explain(ctx, q, -1)
	for _, err := range c.Items(ctx, "") {
		if out["items"] = err; err != nil {
			break
		}
	}
	r, err := c.SearchRadius(ctx, q, 16)
	if out["radius"] = err; err == nil {
		_, out["hits"] = dbkit.Collect(r.Hits(ctx))
		out["first"] = errOf(r.First(ctx, 3))
		out["close"] = r.Close()
	}
	return out
}

func TestSnapshotIsReadOnlyUntilItIsClosed(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	s := need(d.Snapshot())(t)
	then := need(s.Collection("main"))(t)
	errorIs(t, errOf(s.Collection("other")), db.ErrNotFound)
	need(d.CreateCollection(ctx, "other", db.Schema{Bits: 8}))(t)
	errorIs(t, errOf(s.Collection("other")), db.ErrNotFound)
	b := d.NewBatch()
	errorsAre(t, db.ErrReadOnly, map[string]error{
		"put":    errOf(then.Put(ctx, items[0])),
		"merge":  errOf(then.Merge(ctx, items[0])),
		"delete": errOf(then.Delete(ctx, "k1")),
		"train":  errOf(then.Train(ctx, db.TrainOptions{})),
		"batch":  b.Put(then, items[0]),
	})
	// Everything goes on, and the snapshot stays.
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24}})
	need(c.Delete(ctx, "k1", "k2", "k3"))(t)
	must(t, d.Compact(ctx))
	for what, err := range uses(then) {
		fine(t, err, what)
	}
	gives(t, 40)(dbkit.CountWithin(then, db.Query{Code: []byte{1, 2}}, 16))
	gives(t, 37)(dbkit.CountWithin(c, db.Query{Code: []byte{1, 2, 3}}, 24))
	must(t, s.Close())
	for what, err := range uses(then) {
		failIf(t, !errors.Is(err, db.ErrClosed), "%s of a closed snapshot: %v", what, err)
	}
	errorIs(t, errOf(s.Collection("main")), db.ErrClosed)
	errorIs(t, s.Close(), db.ErrClosed)
}

// Closing the database ends what is open, whichever plan has made it.
func TestCloseWithOpenSnapshotsAndRuns(t *testing.T) {
	fsys := vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	for i := range 300 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i), byte(i >> 8)}}))(t)
	}
	if err := d.Compact(ctx); err != nil { // so that files are read, too
		t.Fatal(err)
	}
	var all []*db.Runs
	var snapshots []*db.Snapshot
	for _, plan := range dbkit.AllPlans {
		s := need(d.Snapshot())(t)
		then := need(s.Collection("main"))(t)
		for _, c := range []*db.Collection{c, then} {
			r := need(c.SearchRadius(ctx, db.Query{Code: []byte{1, 2}, Plan: plan}, 5))(t)
			all = append(all, r)
		}
		snapshots = append(snapshots, s)
	}
	// Runs are good without their snapshot.
	must(t, snapshots[0].Close())
	hits, err := dbkit.Collect(all[1].Hits(ctx))
	failIf(t, err != nil || len(hits) != all[1].Total(), "%d hits of %d, %v", len(hits), all[1].Total(), err)
	must(t, all[0].Close())
	dbkit.MustClose(t, d)
	for i, r := range all {
		_, err := dbkit.Collect(r.Hits(ctx))
		for what, err := range map[string]error{"hits": err, "first": errOf(r.First(ctx, 1)),
			"distances": errOf(r.Distances(ctx)), "close": r.Close()} {
			failIf(t, !errors.Is(err, db.ErrClosed), "runs %d, %s: %v", i, what, err)
		}
		for _, err := range r.All(ctx) {
			failIf(t, !errors.Is(err, db.ErrClosed), "runs %d go on: %v", i, err)
		}
	}
	for _, s := range snapshots {
		errorIs(t, errOf(s.Collection("main")), db.ErrClosed)
		errorIs(t, s.Close(), db.ErrClosed)
	}
	errorIs(t, errOf(d.Snapshot()), db.ErrClosed)
	errorIs(t, d.Compact(ctx), db.ErrClosed)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	holds(t, dbkit.MustCollection(t, d, "main"), 300)
	dbkit.MustClose(t, d)
}

// Runs show what was there when they were made, to any number of goroutines.
func TestRunsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenCoded(t, 16)
	var items []*db.Item
	for i := range 500 {
		items = append(items, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i % 7), byte(i % 5)}})
	}
	putAll(t, c, items)
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 1}, Plan: plan}
		runs := need(c.SearchRadius(ctx, q, 3))(t)
		want, err := dbkit.Collect(runs.Hits(ctx))
		stopIf(t, err != nil || len(want) != runs.Total() || len(want) == 0, "%d hits of %d, %v", len(want),
			runs.Total(), err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 5 {
					if got, err := dbkit.Collect(runs.Hits(ctx)); err != nil || !oracle.SameHits(got, want) {
						t.Errorf("plan %v: %d hits, want %d, %v", plan, len(got), len(want), err)
					}
					rows := 0
					for run, err := range runs.All(ctx) {
						fine(t, err, "plan", plan)
						rows += len(run.Rows)
					}
					failIf(t, rows != len(want), "plan %v: %d rows, want %d", plan, rows, len(want))
				}
			})
		}
		for i := range 40 {
			need(c.Put(ctx, &db.Item{Key: fmt.Sprint("k", 11*i), Code: []byte{255, byte(i)}}))(t)
		}
		need(c.Delete(ctx, "k2", "k3", "k5"))(t)
		must(t, d.Compact(ctx))
		putAll(t, c, items)
		wg.Wait()
		fine(t, runs.Close())
	}
}

// A context that has ended ends every search, and is what it returns.
func TestCancelledSearches(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, dbkit.CodeItems(1000, 16, 1, nil)) // so many codes that the context is looked at
	runs := need(c.SearchRadius(ctx, db.Query{Code: []byte{1, 2}}, 16))(t)
	defer runs.Close()
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 2}, Plan: plan}
		_, _, explained := c.Explain(cctx, q, -1)
		for what, err := range map[string]error{
			"search": errOf(c.Search(cctx, q)), "radius": errOf(c.SearchRadius(cctx, q, 3)),
			"explain": explained,
		} {
			failIf(t, !errors.Is(err, context.Canceled), "%s, plan %v: %v", what, plan, err)
		}
	}
	_, err := dbkit.Collect(runs.Hits(cctx))
	errorsAre(t, context.Canceled, map[string]error{"hits": err, "first": errOf(runs.First(cctx, 1)),
		"distances": errOf(runs.Distances(cctx)), "compact": d.Compact(cctx)})
}

// A snapshot or runs that were closed do not say that the database was, which is open.
func TestClosedSnapshotsSayWhatIsClosed(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, []*db.Item{{Key: "k", Code: []byte{1, 2}}})
	s := need(d.Snapshot())(t)
	runs := need(c.SearchRadius(ctx, db.Query{Key: "k"}, 4))(t)
	must(t, errors.Join(s.Close(), runs.Close()))
	for _, err := range []error{
		errOf(s.Collection("main")), s.Close(), errOf(runs.First(ctx, 1)), runs.Close(),
	} {
		failIf(t, !errors.Is(err, db.ErrClosed) || strings.Contains(err.Error(), "database"), "%v", err)
	}
}

// What is not known is answered with what is.
func TestErrorsListWhatIsPossible(t *testing.T) {
	_, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, []*db.Item{{Key: "k", Code: []byte{1, 2}}})
	for says, err := range map[string]error{
		"blockscan":  errOf(c.Search(ctx, db.Query{Key: "k", Plan: 77})),
		"asymmetric": errOf(c.Search(ctx, db.Query{Key: "k", Rerank: 77})),
		"is empty":   errOf(db.Open("", nil)),
	} {
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), says), "%v, not %q", err,
			says)
	}
}
