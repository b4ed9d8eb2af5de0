package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

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
		"stats":  errOf(c.Stats(ctx)),
		"schema": errOf(c.Schema()),
	}
	_, _, out["explain"] = dbkit.Explain(ctx, c, q, -1)
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
	d, c, items := openPairs(t, -1, 40, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	s := need(d.Snapshot())(t)
	then := need(s.Collection("main"))(t)
	errorIs(t, errOf(s.Collection("other")), db.ErrNotFound)
	need(d.CreateCollection(ctx, "other", db.Schema{Bits: 8}))(t)
	errorIs(t, errOf(s.Collection("other")), db.ErrNotFound)
	b := d.NewBatch()
	errorsAre(t, db.ErrReadOnly, map[string]error{
		"put":          errOf(then.Put(ctx, items[0])),
		"merge":        errOf(then.Merge(ctx, items[0])),
		"delete":       errOf(then.Delete(ctx, "k1")),
		"delete where": errOf(then.DeleteWhere(ctx, "NOT label = ''")),
		"train":        errOf(then.Train(ctx, db.TrainOptions{})),
		"batch":        b.Put(then, items[0]),
	})
	holds(t, c, 40)
	// Everything goes on, and the snapshot stays.
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24}})
	need(c.Delete(ctx, "k1", "k2", "k3"))(t)
	must(t, d.Compact(ctx))
	errorsAre(t, nil, uses(then))
	gives(t, 40)(dbkit.CountWithin(then, db.Query{Code: []byte{1, 2}}, 16))
	runs := need(then.SearchRadius(ctx, db.Query{Key: "k7"}, 4))(t)
	gives(t, 37)(dbkit.CountWithin(c, db.Query{Code: []byte{1, 2, 3}}, 24))
	must(t, s.Close())
	errorsAre(t, db.ErrClosed, uses(then))
	must(t, runs.Close())
	for _, err := range []error{errOf(s.Collection("main")), s.Close(), errOf(runs.First(ctx, 1)),
		runs.Close()} {
		// The database is open.
		failIf(t, !errors.Is(err, db.ErrClosed) || strings.Contains(err.Error(), "database"), "%v", err)
	}
}

// Closing the database ends what is open, whichever plan has made it.
func TestCloseWithOpenSnapshotsAndRuns(t *testing.T) {
	fsys := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fsys}, db.Schema{Bits: 16})
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
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{1, 2}, Plan: plan}
		_, _, explained := dbkit.Explain(cancelled, c, q, -1)
		for what, err := range map[string]error{
			"search": errOf(c.Search(cancelled, q)), "radius": errOf(c.SearchRadius(cancelled, q, 3)),
			"explain": explained,
		} {
			failIf(t, !errors.Is(err, context.Canceled), "%s, plan %v: %v", what, plan, err)
		}
	}
	_, err := dbkit.Collect(runs.Hits(cancelled))
	errorsAre(t, context.Canceled, map[string]error{"hits": err, "first": errOf(runs.First(cancelled, 1)),
		"distances": errOf(runs.Distances(cancelled)), "compact": d.Compact(cancelled)})
}

// Keys are in the order of their bytes, those with a prefix together, and items come with all that they hold.
func TestKeysInOrder(t *testing.T) {
	ctx := t.Context()
	d := dbkit.Open(t)
	fields := []db.Field{{Name: "n", Type: db.Int}}
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8, Fields: fields}))(t)
	other := need(d.CreateCollection(ctx, "other", db.Schema{Bits: 8}))(t)
	keys := []string{"b/2", "a", "b/10", "ü", "b/1", "b", "b0", "\U0010ffff", "B/1", "b/\U0010ffff"}
	for i, key := range keys {
		it := &db.Item{Key: key, Code: []byte{byte(i)}, Labels: []string{"l"},
			Fields: map[string]any{"n": int64(i)}, Payload: []byte(key)}
		need(c.Put(ctx, it))(t)
	}
	need(other.Put(ctx, &db.Item{Key: "b/3", Code: []byte{9}}))(t)
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	then := need(snap.Collection("main"))(t)
	need(c.Delete(ctx, "b/10"))(t)
	now := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "b/10" })
	for _, test := range []struct {
		c    *db.Collection
		keys []string
	}{{c, now}, {then, keys}} {
		for _, prefix := range []string{"", "b", "b/", "b/1", "b/\U0010ffff", "ü", "\xc3", "nothing",
			strings.Repeat("x", db.MaxKeyBytes+1)} {
			var want []string
			for _, k := range slices.Sorted(slices.Values(test.keys)) {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			got, err := dbkit.Collect(test.c.Keys(ctx, prefix))
			failIf(t, err != nil || !slices.Equal(got, want), "keys with %.20q: %q, %v; want %q", prefix, got,
				err, want)
		}
		for _, k := range append(keys, "", "b/3", "never", strings.Repeat("x", db.MaxKeyBytes+1)) {
			gives(t, slices.Contains(test.keys, k), k)(dbkit.Has(ctx, test.c, k))
		}
	}
	// An iteration shows what there was when it began, whatever is written meanwhile.
	var seen []string
	for key := range every(t, c.Keys(ctx, "b")) {
		if len(seen) == 0 {
			need(c.Put(ctx, &db.Item{Key: "b/new", Code: []byte{1}}))(t)
			need(c.Delete(ctx, "b0"))(t)
		}
		if seen = append(seen, key); len(seen) == 4 {
			break
		}
	}
	want := []string{"b", "b/1", "b/2", "b/\U0010ffff"}
	failIf(t, !slices.Equal(seen, want), "during writes: %q, want %q", seen, want)
	_, keysErr := dbkit.Collect(c.Keys(cancelled, ""))
	_, hasErr := dbkit.Has(cancelled, c, "a")
	for _, err := range []error{keysErr, hasErr} {
		failIf(t, !errors.Is(err, context.Canceled), "cancelled: %v", err)
	}
}

// EnsureCollection creates a collection, or returns the one that fits the schema.
func TestEnsureCollection(t *testing.T) {
	ctx := t.Context()
	d := dbkit.Open(t)
	schema := db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 4}, {Name: "text", Dim: 9, Sparse: true}},
		Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
	}
	var group sync.WaitGroup
	all := make([]*db.Collection, 8)
	for i := range all {
		group.Go(func() {
			c, err := d.EnsureCollection(ctx, "main", schema)
			if err != nil {
				t.Error(err)
				return
			}
			fine(t, errOf(c.Put(ctx, &db.Item{Key: fmt.Sprint(i)})))
			all[i] = c
		})
	}
	group.Wait()
	holds(t, all[0], len(all))
	more := db.Alteration{AddModalities: []db.Modality{{Name: "sound", Dim: 3}},
		AddFields: []db.Field{{Name: "title", Type: db.String}}}
	must(t, all[0].Alter(ctx, more))
	fine(t, errOf(d.EnsureCollection(ctx, "main", schema)))
	before := need(d.Stats())(t).Sequence
	for says, wrong := range map[string]db.Schema{
		"bring codes of 0 bits, not 8": {Bits: 8},
		`modality "image" is of dimension 4, not of dimension 5`: {Modalities: []db.Modality{
			{Name: "image", Dim: 5}}},
		`modality "text" is sparse, of dimension 9, not of dimension 9`: {Modalities: []db.Modality{
			{Name: "text", Dim: 9}}},
		`without modality "smell": Alter adds it`: {Modalities: []db.Modality{
			{Name: "image", Dim: 4}, {Name: "smell", Dim: 4}}},
		`field "year" is of type int, indexed, not of type int, not indexed`: {Modalities: schema.Modalities,
			Fields: []db.Field{{Name: "year", Type: db.Int}}},
		`without field "price": Alter adds it`: {Modalities: schema.Modalities,
			Fields: []db.Field{{Name: "price", Type: db.Float}}},
	} {
		_, err := d.EnsureCollection(ctx, "main", wrong)
		failIf(t, !errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), says), "%v, want %s", err,
			says)
	}
	errorIs(t, errOf(d.EnsureCollection(ctx, "bad", db.Schema{Bits: 7})), db.ErrInvalid)
	indexOnly := db.Schema{Modalities: schema.Modalities, IndexOnly: true}
	for _, name := range []string{"main", "none"} { // what CreateCollection says of it
		_, refused := d.CreateCollection(ctx, name, indexOnly)
		_, err := d.EnsureCollection(ctx, name, indexOnly)
		failIf(t, !errors.Is(err, db.ErrInvalid) || err.Error() != refused.Error(),
			"an index-only collection %q: %v, want %v", name, err, refused)
	}
	after := need(d.Stats())(t).Sequence
	failIf(t, after != before, "%d commits", after-before)
}

// A sample has as many items as it is asked for, each once, whole and in database order, of those that
// match; each is as likely as any other.
func TestSample(t *testing.T) {
	t.Parallel()
	d := dbkit.Open(t)
	c := need(d.CreateCollection(t.Context(), "main", db.Schema{Bits: 8}))(t)
	const items = 40
	for i := range items {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}
		if i%2 == 0 {
			it.Labels = []string{"even"}
		}
		need(c.Put(t.Context(), it))(t)
	}
	need(c.Delete(t.Context(), "8"))(t)
	for _, where := range []string{"", "label = 'even'", "label = 'none'"} {
		all := need(dbkit.Collect(c.Items(t.Context(), where)))(t)
		drawn := map[string]int{}
		const n, seeds = 5, 600
		for seed := range uint64(seeds) {
			got := need(dbkit.Collect(c.Sample(t.Context(), n, seed, where)))(t)
			stopIf(t, len(got) != min(n, len(all)), "where %q, seed %d: %d items", where, seed, len(got))
			rest := all
			for _, it := range got {
				drawn[it.Key]++
				i := slices.IndexFunc(rest, func(other *db.Item) bool { return cmp.Equal(other, it) })
				stopIf(t, i < 0, "where %q, seed %d: %v is not among those that come next", where, seed, it)
				rest = rest[i+1:]
			}
		}
		// Six standard deviations of a binomial distribution.
		p := float64(n) / float64(len(all))
		for _, it := range all {
			if far := math.Abs(float64(drawn[it.Key]) - seeds*p); far > 6*math.Sqrt(seeds*p*(1-p)) {
				t.Errorf("where %q: %s is drawn %d times of %d", where, it.Key, drawn[it.Key], seeds)
			}
		}
	}
	once, again := need(dbkit.Collect(c.Sample(t.Context(), 5, 7, "")))(t),
		need(dbkit.Collect(c.Sample(t.Context(), 5, 7, "")))(t)
	equal(t, once, again)
	all := need(dbkit.Collect(c.Sample(t.Context(), items, 1, "label = ?", "even")))(t)
	failIf(t, len(all) != items/2-1, "%d of all", len(all))
	for n, where := range map[int]string{0: "", -1: "", 1: "label =", 2: "label = ?"} {
		_, err := dbkit.Collect(c.Sample(t.Context(), n, 1, where))
		failIf(t, !errors.Is(err, db.ErrInvalid), "%d where %q: %v", n, where, err)
	}
}
