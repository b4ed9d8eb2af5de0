package db_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// life is what a database goes through while a change to its files fails: it
// is made, filled, trained, closed, opened and written to. It returns the keys that were
// acknowledged, those of which that is not known, and whether a training was.
func life(fsys vfs.FS, items []*db.Item) (there, unknown []string, trained bool) {
	opts := &db.Options{FS: fsys}
	for round := range 2 {
		d, err := db.Open("db", opts)
		if err != nil {
			continue
		}
		c, err := d.Collection("main")
		if errors.Is(err, db.ErrNotFound) {
			c, err = d.CreateCollection(ctx, "main", dbkit.PairsSchema)
		}
		if err == nil {
			for _, it := range items[20*round : 20*round+20] {
				if _, err := c.Put(ctx, it); err == nil {
					there = append(there, it.Key)
				} else if errors.Is(err, db.ErrFailed) {
					unknown = append(unknown, it.Key)
				}
			}
			if round == 0 {
				_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}})
				trained = err == nil
			}
			db.State(d).Engine.DB.AsyncFlush() // so that tables and manifests are written, too
		}
		d.Close()
	}
	return there, unknown, trained
}

// Whichever change to the file system fails: the process goes on, and opening the
// database again shows everything that was acknowledged.
func TestEveryFailedChange(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.Pairs(40, synth.Config{})
	for k := range sampled(7) {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k}
		there, unknown, trained := life(errorfs.Wrap(mem, fail), items)
		if !fail.Fired {
			stopIf(t, len(there) != 40 || !trained || k < 50,
				"without a failure, after %d changes: %d items, trained: %v", k, len(there), trained)
			t.Logf("%d changes failed in turn", k)
			return
		}
		d, err := db.Open("db", &db.Options{FS: mem})
		must(t, err, "change", k, "failed", len(there), "items acknowledged")
		c, err := d.Collection("main")
		if errors.Is(err, db.ErrNotFound) && len(there) == 0 {
			dbkit.MustClose(t, d)
			continue
		} else if err != nil {
			t.Fatalf("change %d failed: %v", k, err)
		}
		if err := complete(c); err != nil { // a training that was cut short goes on by itself
			t.Fatalf("change %d failed: %v", k, err)
		}
		for _, key := range there {
			fine(t, errOf(c.Get(ctx, key)), "change", k, "failed")
		}
		found := dbkit.AllItems(t, c)
		n := len(found)
		failIf(t, n < len(there) || n > len(there)+len(unknown),
			"change %d failed: %d items, %d acknowledged, %d unknown", k, n, len(there), len(unknown))
		labelled := map[string]int{}
		for _, it := range found {
			for _, l := range it.Labels {
				labelled[l]++
			}
		}
		for l, want := range labelled {
			gives(t, want, k, l)(c.Count(ctx, "label = ?", l))
		}
		checkCodes(t, c, found)
		checkSpaces(t, d)
		s, err := c.Stats(ctx)
		failIf(t, err != nil || (trained && s.CodedItems != s.Items), "change %d failed: %+v, %v", k, s, err)
		fine(t, errOf(c.Put(ctx, &db.Item{Key: "after"})), "change", k, "failed, and afterwards")
		dbkit.MustClose(t, d)
	}
}

// A read that fails concerns whoever needed it, and nobody else.
func TestFailedReadFailsAlone(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	var broken atomic.Bool
	fsys := failing(mem, dbkit.ErrInjected, func(op errorfs.Op) bool {
		return broken.Load() && op.Kind == errorfs.OpFileReadAt
	})
	d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema)
	items := dbkit.Pairs(300, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	putAll(t, c, items)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys, CacheBytes: 1}) // so that every read comes to the file
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	labels := need(c.Labels())(t)
	broken.Store(true)
	for what, err := range map[string]error{
		"get":    errOf(c.Get(ctx, "k7")),
		"delete": errOf(c.Delete(ctx, "k7")),
		"merge":  errOf(c.Merge(ctx, &db.Item{Key: "k8", Labels: []string{"new"}})),
		"train":  errOf(c.Train(ctx, db.TrainOptions{})),
		"put":    errOf(c.Put(ctx, &db.Item{Key: "k9"})),
		"count":  errOf(c.Count(ctx, "label = ?", labels[0])),
		"number": errOf(c.Count(ctx, "year > 0")),
		"where":  errOf(c.DeleteWhere(ctx, "label = ?", labels[0])),
	} {
		failIf(t, !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrInvalid) ||
			errors.Is(err, db.ErrFailed) || errors.Is(err, db.ErrCorrupt), "%s: %v", what, err)
	}
	broken.Store(false)
	fine(t, errOf(c.Merge(ctx, &db.Item{Key: "k8", Labels: []string{"new"}})))
	gives(t, 1)(c.Delete(ctx, "k7"))
	labels, _ = c.Labels()
	failIf(t, labels[len(labels)-1] != "new", "labels %v", labels)
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// One damaged item is an error for who touches it, not for the database.
func TestDamagedItemFailsAlone(t *testing.T) {
	d, c, _ := openPairs(t, -1, 3, synth.Config{})
	for it := range storeKeys(t, d) {
		if it[0] == 0x11 && it[8] == 1 { // the item record of row 1
			must(t, db.State(d).Engine.DB.Set(it, []byte("damage"), nil))
		}
		if it[0] == 0x12 && it[8] == 2 { // the features of row 2
			must(t, db.State(d).Engine.DB.Delete(it, nil))
		}
	}
	if _, err := c.Put(ctx, &db.Item{Key: "x"}); err != nil { // readers see the damage from here on
		t.Fatal(err)
	}
	for _, key := range []string{"k1", "k2"} {
		_, err := c.Get(ctx, key)
		failIf(t, !errors.Is(err, db.ErrCorrupt), "get %s: %v", key, err)
		_, err = c.Merge(ctx, &db.Item{Key: key, Labels: []string{"a"}})
		failIf(t, !errors.Is(err, db.ErrCorrupt), "merge with %s: %v", key, err)
	}
	fine(t, errOf(c.Put(ctx, dbkit.Pairs(2, synth.Config{})[1])))
	fine(t, errOf(c.Get(ctx, "k1")))
}

// A panic in the committer is answered like a failed write, and nobody waits for ever.
func TestPanicInTheCommitterIsAnswered(t *testing.T) {
	for what, broken := range map[string]func(*db.Collection) error{
		"resolving": func(c *db.Collection) error {
			// no item
			return db.State(db.Of(c)).Committer.Submit(ctx,
				&state.Request{Changes: []*state.Change{{Collection: db.Inside(c).ID}}})
		},
		"exclusive": func(c *db.Collection) error {
			return db.State(db.Of(c)).Committer.Do(ctx, 0, func(*state.Tx) error { panic("mine") })
		},
	} {
		d, c, _ := openPairs(t, -1, 3, synth.Config{})
		err := broken(c)
		failIf(t, !errors.Is(err, db.ErrFailed), "%s: %v", what, err)
		_, err = c.Put(ctx, &db.Item{Key: "late"})
		failIf(t, !errors.Is(err, db.ErrFailed), "%s, and a put: %v", what, err)
		fine(t, errOf(c.Get(ctx, "k1")), what, "and a get")
		err = d.Close()
		failIf(t, !errors.Is(err, db.ErrFailed), "%s, and close: %v", what, err)
	}
}

// storeKeys yields the keys of the store.
func storeKeys(t *testing.T, d *db.DB) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		it := need(db.State(d).Engine.DB.NewIter(nil))(t)
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if !yield(append([]byte(nil), it.Key()...)) {
				return
			}
		}
	}
}

// breakable is a disk of which all changes fail while it is broken.
func breakable() (fsys vfs.FS, broken *atomic.Bool) {
	broken = new(atomic.Bool)
	return failing(vfs.NewMem(), errors.New("the disk is gone"), func(op errorfs.Op) bool {
		return broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite
	}), broken
}

// A database that has failed answers reads from the last state that was acknowledged,
// refuses all else, and opening it again recovers.
func TestFailedDatabase(t *testing.T) {
	fsys, broken := breakable()
	opts := &db.Options{FS: fsys, UpdateItems: 1}
	d := dbkit.MustOpen(t, "db", opts)
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	need(d.CreateCollection(ctx, "other", schema))(t)
	items := dbkit.Pairs(60, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	putAll(t, c, items[:50])
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}
	dbkit.MustTrain(t, c, opt)
	second2 := dbkit.MustTrain(t, c, opt).Space
	before := need(c.Search(ctx, db.Query{Key: "k7", K: 50}))(t)
	early := need(d.Snapshot())(t)
	runs := need(c.SearchRadius(ctx, db.Query{Key: "k7"}, 16))(t)
	broken.Store(true)
	errorIs(t, errOf(c.Put(ctx, items[55])), db.ErrFailed)
	bulk := func() error {
		b := d.NewBatch()
		for i := range bulkItems {
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint(i)}))
		}
		return b.Commit(ctx)
	}
	errorsAre(t, db.ErrFailed, map[string]error{
		"put":              errOf(c.Put(ctx, items[56])),
		"merge":            errOf(c.Merge(ctx, items[3])),
		"delete":           errOf(c.Delete(ctx, "k3")),
		"delete where":     errOf(c.DeleteWhere(ctx, "year = 3")),
		"bulk":             bulk(),
		"create":           errOf(d.CreateCollection(ctx, "third", schema)),
		"alter":            c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"drop":             d.DropCollection(ctx, "other"),
		"drop space":       c.DropSpace(ctx, second2),
		"activate":         c.Activate(ctx, second2),
		"rollback":         errOf(c.Rollback(ctx)),
		"restore revision": errOf(c.RestoreRevision(ctx, 1, 1)),
		"train":            errOf(c.Train(ctx, opt)),
		"reindex":          errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"update":           errOf(c.Update(ctx, db.UpdateOptions{})),
		"compact":          d.Compact(ctx),
	}, "fddhdb: ")
	reads := func(c *db.Collection) map[string]error {
		out := map[string]error{
			"get":        errOf(c.Get(ctx, "k3")),
			"radius":     errOf(dbkit.CountWithin(c, db.Query{Key: "k7"}, 3)),
			"all":        errOf(c.SearchAll(ctx, []db.Query{{Key: "k7"}})),
			"spaces":     errOf(c.Spaces(ctx)),
			"statistics": errOf(c.Stats(ctx)),
			"labels":     errOf(c.Labels()),
		}
		if n, err := c.Count(ctx, "year >= 0"); n != 50 || err != nil {
			out["count"] = fmt.Errorf("%d, %w", n, err)
		}
		if n, err := c.Count(t.Context(), ""); n != 50 || err != nil {
			out["items"] = fmt.Errorf("%d, %w", n, err)
		}
		res, err := c.Search(ctx, db.Query{Key: "k7", K: 50})
		if err != nil || fmt.Sprint(res.Hits) != fmt.Sprint(before.Hits) {
			out["search"] = fmt.Errorf("other hits, %w", err)
		}
		return out
	}
	late := need(d.Snapshot())(t)
	for _, c := range []*db.Collection{c, need(early.Collection("main"))(t),
		need(late.Collection("main"))(t)} {
		errorsAre(t, nil, reads(c))
	}
	res, err := runs.First(ctx, 50)
	failIf(t, err != nil || len(res.Hits) != 50, "runs: %v", err)
	err = d.WaitForIndex(ctx)
	failIf(t, err != nil && !errors.Is(err, db.ErrFailed), "wait for the index: %v", err)
	dbkit.CheckSound(t, d, "failed")
	fine(t, errors.Join(runs.Close(), early.Close(), late.Close()))
	errorIs(t, d.Close(), db.ErrFailed, "fddhdb: ")
	errorIs(t, d.Close(), db.ErrClosed)
	broken.Store(false)
	d = dbkit.MustOpen(t, "db", opts)
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	for _, it := range items[:50] {
		fine(t, errOf(c.Get(ctx, it.Key)))
	}
	fine(t, errOf(c.Put(ctx, items[57])))
	dbkit.CheckSound(t, d, "opened again")
}

// What goes on while the database fails ends with the failure.
func TestFailureDuringLongWork(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"scan", "statistics", "encode"} {
		t.Run(phase, func(t *testing.T) {
			fsys, broken := breakable()
			d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema)
			items := dbkit.Pairs(60, synth.Config{})
			putAll(t, c, items)
			met := false
			opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10,
				Progress: func(now string, _, _ int64) {
					if now == phase && !met {
						met = true
						broken.Store(true)
						errorIs(t, errOf(c.Put(ctx, &db.Item{Key: "late"})), db.ErrFailed)
					}
				}}}
			if _, err := c.Train(ctx, opt); !met || !errors.Is(err, db.ErrFailed) {
				t.Errorf("the phase was met: %v; %v", met, err)
			}
			fine(t, errOf(c.Get(ctx, "k7")))
			errorIs(t, d.Close(), db.ErrFailed)
			broken.Store(false)
			d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
			defer d.Close()
			c = dbkit.MustCollection(t, d, "main")
			if n, err := c.Count(t.Context(), ""); n < 60 || err != nil {
				t.Errorf("%d items, %v", n, err)
			}
			dbkit.CheckSound(t, d, "opened again")
			_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
			if errors.Is(err, db.ErrBusy) { // what the first one has learned is being completed
				_, err = c.Reindex(ctx, db.ReindexOptions{})
			}
			fine(t, err, "train again")
		})
	}
}
