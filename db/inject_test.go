package db

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// failOnce injects a failure: into the k-th operation of a kind, by default of those that
// change the file system; and into all after it, if forever.
type failOnce struct {
	k       int
	on      func(errorfs.Op) bool
	forever bool
	off     atomic.Bool // operations neither fail nor count

	mu    sync.Mutex
	fired bool
}

var errInjected = errors.New("injected")

func (f *failOnce) MaybeError(op errorfs.Op) error {
	on := f.on
	if on == nil {
		on = isWrite
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off.Load() || f.fired && !f.forever || !on(op) {
		return nil
	}
	if f.k--; f.k < 0 {
		f.fired = true
		return errInjected
	}
	return nil
}

func (f *failOnce) String() string { return "fail once" }

// hit reports whether anything has failed.
func (f *failOnce) hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// life is what a database goes through while a change to its files fails: it
// is made, filled, trained, closed, opened and written to. It returns the keys that were
// acknowledged, those of which that is not known, and whether a training was.
func life(fsys vfs.FS, items []*Item) (there, unknown []string, trained bool) {
	opts := &Options{FS: fsys}
	for round := range 2 {
		d, err := Open("db", opts)
		if err != nil {
			continue
		}
		c, err := d.Collection("main")
		if errors.Is(err, ErrNotFound) {
			c, err = d.CreateCollection(ctx, "main", pairsSchema)
		}
		if err == nil {
			for _, it := range items[20*round : 20*round+20] {
				if _, err := c.Put(ctx, it); err == nil {
					there = append(there, it.Key)
				} else if errors.Is(err, ErrFailed) {
					unknown = append(unknown, it.Key)
				}
			}
			if round == 0 {
				_, err := c.Train(ctx, TrainOptions{Options: model.Options{Bits: 16, Anchors: 5, Views: model.ViewsTarget}})
				trained = err == nil
			}
			d.state.Engine.DB.AsyncFlush() // so that tables and manifests are written, too
		}
		d.Close()
	}
	return there, unknown, trained
}

// Whichever change to the file system fails: the process goes on, and opening the
// database again shows everything that was acknowledged.
func TestEveryFailedChange(t *testing.T) {
	longTest(t)
	items := pairs(40, synth.Config{})
	for k := 0; ; k++ {
		if !sampled(k, 3) {
			continue
		}
		mem := vfs.NewMem()
		fail := &failOnce{k: k}
		there, unknown, trained := life(errorfs.Wrap(mem, fail), items)
		if !fail.fired {
			if len(there) != 40 || !trained || k < 50 {
				t.Fatalf("without a failure, after %d changes: %d items, trained: %v", k, len(there), trained)
			}
			t.Logf("%d changes failed in turn", k)
			return
		}
		d, err := Open("db", &Options{FS: mem})
		if err != nil {
			t.Fatalf("change %d failed, %d items acknowledged: %v", k, len(there), err)
		}
		c, err := d.Collection("main")
		if errors.Is(err, ErrNotFound) && len(there) == 0 {
			mustClose(t, d)
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
		found := allItems(t, c)
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
		if _, err := c.Put(ctx, &Item{Key: "after"}); err != nil {
			t.Errorf("change %d failed, and afterwards: %v", k, err)
		}
		mustClose(t, d)
	}
}

// A read that fails concerns whoever needed it, and nobody else.
func TestFailedReadFailsAlone(t *testing.T) {
	longTest(t)
	mem := vfs.NewMem()
	var broken atomic.Bool
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileReadAt {
			return errInjected
		}
		return nil
	}))
	d := mustOpen(t, "db", &Options{FS: fsys})
	c, err := d.CreateCollection(ctx, "main", pairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(300, synth.Config{})
	for i, it := range items {
		it.Fields = map[string]any{"year": i}
	}
	putAll(t, c, items)
	mustClose(t, d)
	d = mustOpen(t, "db", &Options{FS: fsys, CacheBytes: 1}) // so that every read comes to the file
	defer d.Close()
	c = mustCollection(t, d, "main")
	labels, err := c.Labels()
	if err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for what, err := range map[string]error{
		"get":    second(c.Get(ctx, "k7")),
		"delete": second(c.Delete(ctx, "k7")),
		"merge":  second(c.Merge(ctx, &Item{Key: "k8", Labels: []string{"new"}})),
		"train":  second(c.Train(ctx, TrainOptions{})),
		"put":    second(c.Put(ctx, &Item{Key: "k9"})),
		"count":  second(c.CountWhere(ctx, "label = ?", labels[0])),
		"number": second(c.CountWhere(ctx, "year > 0")),
		"where":  second(c.DeleteWhere(ctx, "label = ?", labels[0])),
	} {
		if !errors.Is(err, errInjected) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrFailed) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	broken.Store(false)
	if _, err := c.Merge(ctx, &Item{Key: "k8", Labels: []string{"new"}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if n, err := c.Delete(ctx, "k7"); n != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
	if labels, _ = c.Labels(); labels[len(labels)-1] != "new" {
		t.Errorf("labels %v", labels)
	}
	mustTrain(t, c, TrainOptions{})
}

// One damaged item is an error for who touches it, not for the database.
func TestDamagedItemFailsAlone(t *testing.T) {
	d, c := openPairs(t)
	putAll(t, c, pairs(3, synth.Config{}))
	for it := range d.storeKeys(t) {
		if it[0] == 0x11 && it[8] == 1 { // the item record of row 1
			if err := d.state.Engine.DB.Set(it, []byte("damage"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if it[0] == 0x12 && it[8] == 2 { // the features of row 2
			if err := d.state.Engine.DB.Delete(it, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.Put(ctx, &Item{Key: "x"}); err != nil { // readers see the damage from here on
		t.Fatal(err)
	}
	for _, key := range []string{"k1", "k2"} {
		if _, err := c.Get(ctx, key); !errors.Is(err, ErrCorrupt) {
			t.Errorf("get %s: %v", key, err)
		}
		if _, err := c.Merge(ctx, &Item{Key: key, Labels: []string{"a"}}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("merge with %s: %v", key, err)
		}
	}
	if _, err := c.Put(ctx, pairs(2, synth.Config{})[1]); err != nil {
		t.Errorf("replacing the damaged item: %v", err)
	}
	if _, err := c.Get(ctx, "k1"); err != nil {
		t.Error(err)
	}
}

// A panic in the committer is answered like a failed write, and nobody waits for ever.
func TestPanicInTheCommitterIsAnswered(t *testing.T) {
	for what, broken := range map[string]func(*Collection) error{
		"resolving": func(c *Collection) error {
			return c.db.state.Committer.Submit(ctx, &state.Request{Changes: []*state.Change{{Collection: c.id}}}) // no item
		},
		"exclusive": func(c *Collection) error {
			return c.db.state.Committer.Do(ctx, 0, func(*state.Tx) error { panic("mine") })
		},
	} {
		d, c := openPairs(t)
		putAll(t, c, pairs(3, synth.Config{}))
		if err := broken(c); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := c.Put(ctx, &Item{Key: "late"}); !errors.Is(err, ErrFailed) {
			t.Errorf("%s, and a put: %v", what, err)
		}
		if _, err := c.Get(ctx, "k1"); err != nil {
			t.Errorf("%s, and a get: %v", what, err)
		}
		if err := d.Close(); !errors.Is(err, ErrFailed) {
			t.Errorf("%s, and close: %v", what, err)
		}
	}
}

// storeKeys yields the keys of the store.
func (d *DB) storeKeys(t *testing.T) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		it, err := d.state.Engine.DB.NewIter(nil)
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
