package db_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
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
	for k := 0; ; k++ {
		if !effort.Sampled(k, 7) {
			continue
		}
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k}
		there, unknown, trained := life(errorfs.Wrap(mem, fail), items)
		if !fail.Fired {
			if len(there) != 40 || !trained || k < 50 {
				t.Fatalf("without a failure, after %d changes: %d items, trained: %v", k, len(there), trained)
			}
			t.Logf("%d changes failed in turn", k)
			return
		}
		d, err := db.Open("db", &db.Options{FS: mem})
		if err != nil {
			t.Fatalf("change %d failed, %d items acknowledged: %v", k, len(there), err)
		}
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
			if _, err := c.Get(ctx, key); err != nil {
				t.Errorf("change %d failed: %v", k, err)
			}
		}
		found := dbkit.AllItems(t, c)
		if n := len(found); n < len(there) || n > len(there)+len(unknown) {
			t.Errorf("change %d failed: %d items, %d acknowledged, %d unknown", k, n, len(there), len(unknown))
		}
		labelled := map[string]int{}
		for _, it := range found {
			for _, l := range it.Labels {
				labelled[l]++
			}
		}
		for l, want := range labelled {
			if n, err := c.CountWhere(ctx, "label = ?", l); err != nil || n != want {
				t.Errorf("change %d failed: %d items with label %s of %d, %v", k, n, l, want, err)
			}
		}
		checkCodes(t, c, found)
		checkSpaces(t, d)
		if s, err := c.Stats(); err != nil || (trained && s.CodedItems != s.Items) {
			t.Errorf("change %d failed: %+v, %v", k, s, err)
		}
		if _, err := c.Put(ctx, &db.Item{Key: "after"}); err != nil {
			t.Errorf("change %d failed, and afterwards: %v", k, err)
		}
		dbkit.MustClose(t, d)
	}
}

// A read that fails concerns whoever needed it, and nobody else.
func TestFailedReadFailsAlone(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	var broken atomic.Bool
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileReadAt {
			return dbkit.ErrInjected
		}
		return nil
	}))
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	putAll(t, c, items)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys, CacheBytes: 1}) // so that every read comes to the file
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	labels, err := c.Labels()
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for what, err := range map[string]error{
		"get":    dbkit.Second(c.Get(ctx, "k7")),
		"delete": dbkit.Second(c.Delete(ctx, "k7")),
		"merge":  dbkit.Second(c.Merge(ctx, &db.Item{Key: "k8", Labels: []string{"new"}})),
		"train":  dbkit.Second(c.Train(ctx, db.TrainOptions{})),
		"put":    dbkit.Second(c.Put(ctx, &db.Item{Key: "k9"})),
		"count":  dbkit.Second(c.CountWhere(ctx, "label = ?", labels[0])),
		"number": dbkit.Second(c.CountWhere(ctx, "year > 0")),
		"where":  dbkit.Second(c.DeleteWhere(ctx, "label = ?", labels[0])),
	} {
		if !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrFailed) || errors.Is(err, db.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	broken.Store(false)
	if _, err := c.Merge(ctx, &db.Item{Key: "k8", Labels: []string{"new"}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if n, err := c.Delete(ctx, "k7"); n != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
	if labels, _ = c.Labels(); labels[len(labels)-1] != "new" {
		t.Errorf("labels %v", labels)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{})
}

// One damaged item is an error for who touches it, not for the database.
func TestDamagedItemFailsAlone(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(3, synth.Config{}))
	for it := range storeKeys(t, d) {
		if it[0] == 0x11 && it[8] == 1 { // the item record of row 1
			if err := db.State(d).Engine.DB.Set(it, []byte("damage"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if it[0] == 0x12 && it[8] == 2 { // the features of row 2
			if err := db.State(d).Engine.DB.Delete(it, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Put(ctx, &db.Item{Key: "x"}); err != nil { // readers see the damage from here on
		t.Fatal(err)
	}
	for _, key := range []string{"k1", "k2"} {
		if _, err := c.Get(ctx, key); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("get %s: %v", key, err)
		}
		if _, err := c.Merge(ctx, &db.Item{Key: key, Labels: []string{"a"}}); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("merge with %s: %v", key, err)
		}
	}
	if _, err := c.Put(ctx, dbkit.Pairs(2, synth.Config{})[1]); err != nil {
		t.Errorf("replacing the damaged item: %v", err)
	}
	if _, err := c.Get(ctx, "k1"); err != nil {
		t.Error(err)
	}
}

// A panic in the committer is answered like a failed write, and nobody waits for ever.
func TestPanicInTheCommitterIsAnswered(t *testing.T) {
	for what, broken := range map[string]func(*db.Collection) error{
		"resolving": func(c *db.Collection) error {
			return db.State(db.Of(c)).Committer.Submit(ctx, &state.Request{Changes: []*state.Change{{Collection: db.Inside(c).ID}}}) // no item
		},
		"exclusive": func(c *db.Collection) error {
			return db.State(db.Of(c)).Committer.Do(ctx, 0, func(*state.Tx) error { panic("mine") })
		},
	} {
		d, c := dbkit.OpenPairs(t)
		putAll(t, c, dbkit.Pairs(3, synth.Config{}))
		if err := broken(c); !errors.Is(err, db.ErrFailed) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := c.Put(ctx, &db.Item{Key: "late"}); !errors.Is(err, db.ErrFailed) {
			t.Errorf("%s, and a put: %v", what, err)
		}
		if _, err := c.Get(ctx, "k1"); err != nil {
			t.Errorf("%s, and a get: %v", what, err)
		}
		if err := d.Close(); !errors.Is(err, db.ErrFailed) {
			t.Errorf("%s, and close: %v", what, err)
		}
	}
}

// storeKeys yields the keys of the store.
func storeKeys(t *testing.T, d *db.DB) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		it, err := db.State(d).Engine.DB.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if !yield(append([]byte(nil), it.Key()...)) {
				return
			}
		}
	}
}
