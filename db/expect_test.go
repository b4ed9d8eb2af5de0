package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var countSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 3}, {Name: "words", Dim: 1000, Sparse: true}},
	Fields: []db.Field{{Name: "n", Type: db.Int, Indexed: true}, {Name: "x", Type: db.Float},
		{Name: "s", Type: db.String}, {Name: "b", Type: db.Bool}, {Name: "at", Type: db.Time}},
}

func full(key string) *db.Item {
	return &db.Item{
		Key: key, Labels: []string{"b", "a"}, Payload: []byte("p"),
		Vectors: map[string][]float32{"image": {1, 0, float32(math.Copysign(0, -1))}},
		Sparse:  map[string]db.Sparse{"words": {Index: []uint32{3, 999}, Value: []float32{1, 2}}},
		Fields:  map[string]any{"n": 1, "x": .5, "s": "t", "b": true, "at": time.Unix(1, 0)},
	}
}

// An item is stored where what is there is what was read, in any of its parts.
func TestPutIf(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", countSchema))(t)
	expect := func(what string, err, want error) {
		t.Helper()
		failIf(t, !errors.Is(err, want) || (want == nil) != (err == nil), "%s: %v, want %v", what, err, want)
	}
	expect("one that is not there", c.PutIf(ctx, full("k"), full("k")), db.ErrConflict)
	expect("a new one", c.PutIf(ctx, full("k"), nil), nil)
	expect("one that is there", c.PutIf(ctx, full("k"), nil), db.ErrConflict)
	for what, change := range map[string]func(*db.Item){
		"fewer labels":    func(it *db.Item) { it.Labels = it.Labels[:1] },
		"another label":   func(it *db.Item) { it.Labels[0] = "c" },
		"another payload": func(it *db.Item) { it.Payload = []byte("q") },
		"no payload":      func(it *db.Item) { it.Payload = nil },
		"another number":  func(it *db.Item) { it.Vectors["image"][1] = 1e-30 },
		"another zero":    func(it *db.Item) { it.Vectors["image"][2] = 0 },
		"no vector":       func(it *db.Item) { it.Vectors = nil },
		"another place":   func(it *db.Item) { it.Sparse["words"].Index[1] = 998 },
		"no sparse":       func(it *db.Item) { it.Sparse = nil },
		"another int":     func(it *db.Item) { it.Fields["n"] = 2 },
		"another float":   func(it *db.Item) { it.Fields["x"] = .25 },
		"another string":  func(it *db.Item) { it.Fields["s"] = "" },
		"another bool":    func(it *db.Item) { it.Fields["b"] = false },
		"another time":    func(it *db.Item) { it.Fields["at"] = time.Unix(1, 1000) },
		"fewer fields":    func(it *db.Item) { delete(it.Fields, "b") },
	} {
		old := full("k")
		change(old)
		expect(what, c.PutIf(ctx, full("k"), old), db.ErrConflict)
	}
	old := full("k")
	old.Labels = []string{"a", "b", "a"}
	expect("the same in other words", c.PutIf(ctx, full("k"), old), nil)
	got, err := c.Get(ctx, "k")
	expect("get", err, nil)
	expect("as it was read", c.PutIf(ctx, &db.Item{Key: "k"}, got), nil)
	expect("as it was read before", c.PutIf(ctx, &db.Item{Key: "k"}, got), db.ErrConflict)

	b := d.NewBatch()
	b.Put(c, full("other"))
	b.Expect(c, "k", full("k"))
	expect("a batch", b.Commit(ctx), db.ErrConflict)
	expect("what was with it", errOf(c.Get(ctx, "other")), db.ErrNotFound)
	b = d.NewBatch()
	b.Delete(c, "k")
	b.Expect(c, "k", &db.Item{Key: "k"}) // before the batch
	b.Put(c, full("k"))
	expect("a batch that changes it itself", b.Commit(ctx), nil)

	expect("no key", c.PutIf(ctx, &db.Item{}, nil), db.ErrInvalid)
	expect("another key", c.PutIf(ctx, full("k"), full("j")), db.ErrInvalid)
	expect("no item", c.PutIf(ctx, nil, nil), db.ErrInvalid)
	expect("an item that cannot be",
		c.PutIf(ctx, full("k"), &db.Item{Key: "k", Fields: map[string]any{"z": 1}}), db.ErrInvalid)
	snap, err := d.Snapshot()
	expect("snapshot", err, nil)
	defer snap.Close()
	past, err := snap.Collection("main")
	expect("its collection", err, nil)
	expect("a snapshot", past.PutIf(ctx, full("k"), nil), db.ErrReadOnly)
}

func TestPutIfOfCodes(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	a, b := &db.Item{Key: "k", Code: []byte{1, 2}}, &db.Item{Key: "k", Code: []byte{1, 3}}
	must(t, errors.Join(c.PutIf(ctx, a, nil), c.PutIf(ctx, b, a)))
	errorIs(t, c.PutIf(ctx, a, a), db.ErrConflict)
}

// A condition among thousands of new items keeps them all out.
func TestExpectInABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	for _, at := range []int{0, bulkItems / 2, bulkItems + 10} {
		d, c := dbkit.OpenPairs(t)
		b := d.NewBatch()
		for i := range bulkItems + 20 {
			if i == at {
				b.Expect(c, "k3", &db.Item{Key: "k3"})
			}
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint("k", i)}))
		}
		err := b.Commit(ctx)
		failIf(t, !errors.Is(err, db.ErrConflict), "condition at %d: %v", at, err)
		gives(t, 0, at)(c.Count(t.Context(), ""))
	}
}

// Sums that move between items of two collections by many writers at a time are kept.
func TestConditionsKeepSums(t *testing.T) {
	t.Parallel()
	d := need(db.Open(t.TempDir(), &db.Options{NoSync: true}))(t)
	defer d.Close()
	var cs [2]*db.Collection
	for i := range cs {
		cs[i] = need(d.CreateCollection(ctx, fmt.Sprint("c", i), countSchema))(t)
		for j := range 3 {
			must(t, errOf(cs[i].Put(ctx, &db.Item{Key: fmt.Sprint(j), Fields: map[string]any{"n": 100}})))
		}
	}
	amount := func(it *db.Item) int64 { return it.Fields["n"].(int64) }
	move := func(from, to *db.Collection, key string) error {
		for {
			a, err := from.Get(ctx, key)
			if err != nil {
				return err
			}
			z, err := to.Get(ctx, key)
			if err != nil {
				return err
			}
			b := d.NewBatch()
			b.PutIf(from, &db.Item{Key: key, Fields: map[string]any{"n": amount(a) - 1}}, a)
			b.PutIf(to, &db.Item{Key: key, Fields: map[string]any{"n": amount(z) + 1}}, z)
			if err := b.Commit(ctx); !errors.Is(err, db.ErrConflict) {
				return err
			}
		}
	}
	var writers sync.WaitGroup
	for w := range 6 {
		writers.Go(func() {
			for i := range 20 {
				fine(t, move(cs[w%2], cs[1-w%2], fmt.Sprint(i%3)))
			}
		})
	}
	writers.Wait()
	for j := range 3 {
		sum := int64(0)
		for _, c := range cs {
			it := need(c.Get(ctx, fmt.Sprint(j)))(t)
			sum += amount(it)
		}
		failIf(t, sum != 200, "item %d: the sum is %d", j, sum)
	}
}

// In a trained collection the codes do not count: they are not the user's.
func TestPutIfAfterTraining(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{})
	putAll(t, c, items)
	old := need(c.Get(ctx, "k7"))(t)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	trained, err := c.Get(ctx, "k7")
	stopIf(t, err != nil || old.Code != nil || trained.Code == nil,
		"code %x before the training and %x after it, %v", old.Code, trained.Code, err)
	changed := *items[7]
	changed.Payload = []byte("changed")
	for what, expected := range map[string]*db.Item{"before": old, "after": trained} {
		fine(t, c.PutIf(ctx, &changed, expected), "as it was read", what, "the training")
		it, err := c.Get(ctx, "k7")
		failIf(t, err != nil || string(it.Payload) != "changed" || !bytes.Equal(it.Code, trained.Code),
			"stored is %q with code %x, %v", it.Payload, it.Code, err)
		if err := c.PutIf(ctx, items[7], expected); !errors.Is(err, db.ErrConflict) {
			t.Errorf("an item that is changed, as it was read %s the training: %v", what, err)
		}
		need(c.Put(ctx, items[7]))(t)
	}
}

// A batch that is refused takes no number from the counter of automatic keys.
func TestRefusedBatchesLeaveTheCounter(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	need(c.Put(ctx, &db.Item{Key: "there", Code: []byte{1}}))(t)
	b := d.NewBatch()
	for range 3 {
		must(t, b.Put(c, &db.Item{Code: []byte{2}}))
	}
	must(t, b.PutIf(c, &db.Item{Key: "there", Code: []byte{3}}, nil))
	errorIs(t, b.Commit(ctx), db.ErrConflict)
	for range 2 {
		need(c.Put(ctx, &db.Item{Code: []byte{4}}))(t)
	}
	for _, key := range []string{"0", "1"} {
		fine(t, errOf(c.Get(ctx, key)))
	}
}

// A number that a batch frees can be taken by what it puts afterwards.
func TestBatchesReuseTheKeysThatTheyDelete(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	need(c.Put(ctx, &db.Item{Key: "0", Code: []byte{1}}))(t)
	b := d.NewBatch()
	b.Delete(c, "0")
	b.Put(c, &db.Item{Code: []byte{2}})
	must(t, b.Commit(ctx))
	it, err := c.Get(ctx, "0")
	failIf(t, err != nil || it.Code[0] != 2, "%+v, %v", it, err)
}
