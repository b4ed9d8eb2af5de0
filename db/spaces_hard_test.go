package db_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// One batch may touch a row that has taught several times: first so that it goes on
// teaching, then not.
func TestBatchesTakeBackWhatRowsHaveTaught(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{Seed: 1})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	payload := func(key string) *db.Item { return &db.Item{Key: key, Payload: []byte{1}} }
	other := func(key string) *db.Item {
		return &db.Item{Key: key, Vectors: items[9].Vectors, Labels: items[3].Labels}
	}
	for what, fill := range map[string]func(b *db.Batch) error{
		"merge, put":    func(b *db.Batch) error { return errors.Join(b.Merge(c, payload("k0")), b.Put(c, other("k0"))) },
		"merge, merge":  func(b *db.Batch) error { return errors.Join(b.Merge(c, payload("k1")), b.Merge(c, other("k1"))) },
		"merge, delete": func(b *db.Batch) error { return errors.Join(b.Merge(c, payload("k2")), b.Delete(c, "k2")) },
		"merge, delete, put": func(b *db.Batch) error {
			return errors.Join(b.Merge(c, payload("k3")), b.Delete(c, "k3"), b.Put(c, other("k3")))
		},
		"put, put":    func(b *db.Batch) error { return errors.Join(b.Put(c, other("k4")), b.Put(c, items[4])) },
		"delete, put": func(b *db.Batch) error { return errors.Join(b.Delete(c, "k5"), b.Put(c, items[5])) },
		"put, merge, delete": func(b *db.Batch) error {
			return errors.Join(b.Put(c, other("k6")), b.Merge(c, payload("k6")), b.Delete(c, "k6"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := d.NewBatch()
			must(t, errors.Join(fill(b), b.Commit(ctx)))
			checkSpaces(t, d)
		})
	}
}

// A space may be dropped while it is being built, and another training begin before
// the one that built it has noticed: neither is in the way of the other.
func TestTrainingAfterASpaceThatIsBeingBuiltWasDropped(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(40, synth.Config{Seed: 1})
	putAll(t, c, items)
	first, learning, dropped := make(chan error, 1), make(chan struct{}), make(chan struct{})
	second := dbkit.TinyTraining(2)
	once := sync.OnceFunc(func() {
		close(learning)
		<-dropped // and the first training has ended
		if _, err := c.Put(ctx, &db.Item{Key: "k3", Vectors: items[4].Vectors, Labels: items[4].Labels}); err != nil {
			t.Error(err)
		}
		if n, err := c.Delete(ctx, "k5"); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
	second.Progress = func(string, int64, int64) { once() }
	opt := dbkit.TinyTraining(1)
	opt.Progress = func(stage string, _, _ int64) {
		if stage != "encode" {
			return
		}
		if err := c.DropSpace(ctx, 1); err != nil {
			t.Error(err)
		}
		go func() {
			_, err := c.Train(ctx, second)
			first <- err
		}()
		<-learning
	}
	_, err := c.Train(ctx, opt)
	if !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the space was dropped, and training says %v", err)
	}
	close(dropped)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	checkSpaces(t, d)
	checkCodes(t, c, dbkit.AllItems(t, c))
}

// A vector that is a hundred thousand times as long as the others and was trained on
// leaves nothing behind when it goes, not even the rounding of the sums that it was
// part of; one that comes later is left out by updates.
func TestVectorsThatAreFarTooLong(t *testing.T) {
	for _, tc := range []struct {
		x       float32
		trained bool
	}{{1e5, true}, {1e7, false}, {3e38, false}} {
		t.Run(fmt.Sprint(tc.x), func(t *testing.T) {
			w := newWorld(t, dbkit.PairsSchema, true)
			items := dbkit.Pairs(60, synth.Config{Seed: 1})
			w.put(items[:40])
			x := tc.x
			long := []*db.Item{{
				Key: "long", Labels: items[0].Labels,
				Vectors: map[string][]float32{"image": {x, x, x, x, x, x, x, -x}, "text": {x, x, x, x, x}},
			}}
			if tc.trained {
				w.put(long)
			}
			opt := dbkit.TinyTraining(1)
			opt.Map = map[string]model.MapKind{"image": model.MapLinear, "text": model.MapRBFLinear}
			dbkit.MustTrain(t, w.c, opt)
			if !tc.trained {
				w.put(long)
				u := dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
				if u.Items != 0 || u.Skipped != 1 || !strings.Contains(u.Reason, "left out") {
					t.Errorf("%+v", u)
				}
			}
			checkSpaces(t, w.d)
			w.reopen()
			if n, err := w.c.Delete(ctx, "long"); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			for _, more := range [][]*db.Item{nil, items[40:]} {
				w.put(more)
				dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
				w.reopen() // which stores the statistics
				checkSpaces(t, w.d)
			}
		})
	}
}

// A vector that is far longer than all others comes first, after all that was trained on
// has been deleted: it is left out, or at least does not keep the others from teaching,
// though without it rounding is all that remains of the sums.
func TestAFirstVectorThatIsFarTooLong(t *testing.T) {
	for name, x := range map[string][]float32{
		"all": slices.Repeat([]float32{1e9}, 8), "one": {1e9, 0, 0, 0, 0, 0, 0, 0}, "less": slices.Repeat([]float32{3e4}, 8),
	} {
		t.Run(name, func(t *testing.T) { firstVector(t, x) })
	}
}

func firstVector(t *testing.T, x []float32) {
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(8, synth.Config{Seed: 1})
	w.put(items[:4])
	opt := dbkit.TinyTraining(1)
	opt.Map = map[string]model.MapKind{"image": model.MapLinear, "text": model.MapLinear}
	dbkit.MustTrain(t, w.c, opt)
	need(w.c.DeleteWhere(ctx, "NOT label = ''"))(t)
	items[4].Labels, items[5].Labels = items[0].Labels, items[0].Labels
	items[4].Vectors["image"] = x
	items[6].Labels = nil
	delete(items[6].Vectors, "image")
	w.put(items[4:7])
	for _, teacher := range []db.Teacher{db.TeacherAuto, db.TeacherModality} {
		dbkit.MustUpdate(t, w.c, db.UpdateOptions{Teacher: teacher})
		checkSpaces(t, w.d)
	}
	if n, err := w.c.Delete(ctx, items[4].Key); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	w.put(items[7:])
	dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
	checkSpaces(t, w.d)
}
