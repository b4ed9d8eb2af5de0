package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// activeSpace returns what is told of the active space.
func activeSpace(t testing.TB, c *db.Collection) db.SpaceInfo {
	t.Helper()
	all, err := c.Spaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.State == db.SpaceActive {
			return s
		}
	}
	t.Fatal("no space is active")
	return db.SpaceInfo{}
}

// eventually waits for something that happens in the background.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in five minutes not: %s", what)
		}
	}
}

// What waited when the database was closed counts, and so does what has taught and is
// deleted.
func TestWhatStartsAnUpdate(t *testing.T) {
	fs := vfs.NewMem()
	opts := &db.Options{FS: fs, UpdateItems: 50}
	d := dbkit.MustOpen(t, "db", opts)
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(200, synth.Config{Seed: 9})
	putAll(t, c, items[:100])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i := range 3 { // fewer than that each time
		putAll(t, c, items[100+30*i:130+30*i])
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
	}
	eventually(t, "an update of 60 items or more", func() bool { return activeSpace(t, c).Revision > 1 })
	before := activeSpace(t, c).Revision
	var keys []string
	for _, it := range items[:60] {
		keys = append(keys, it.Key)
	}
	if _, err := c.Delete(ctx, keys...); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an update after 60 deletions", func() bool { return activeSpace(t, c).Revision > before })
	checkStatistics(t, c, 0)
	dbkit.MustClose(t, d)
}

// An update that has nothing to store is not repeated because others write.
func TestUpdatesThatRefuseAreNotRepeated(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	other, err := db.Of(c).CreateCollection(ctx, "other", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(201, synth.Config{Seed: 9})
	putAll(t, c, items[:100])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for _, it := range items[100:] {
		it.Labels = nil
	}
	putAll(t, c, items[100:200])
	written := func() (n int) {
		if err := db.Read(c, func(_ *state.View, cv *state.CollectionView) error { n = cv.Written; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := written(); n != 100 {
		t.Errorf("%d items were written", n)
	}
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	putAll(t, other, items[200:])
	if n := written(); n != 0 {
		t.Errorf("%d items wait for an update that has looked at them", n)
	}
}

// Items that lack the modality that teaches wait for another teacher.
func TestItemsThatOneTeacherSkips(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(400, synth.Config{Seed: 9})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i, it := range items[200:] {
		it.Labels = nil
		delete(it.Vectors, []string{"image", "text"}[i%2])
	}
	putAll(t, c, items[200:])
	if u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherModality}); u.Unlabelled != 100 || u.Skipped != 100 {
		t.Errorf("%+v", u)
	}
	if u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf}); u.Unlabelled != 100 {
		t.Errorf("%+v", u)
	}
	checkStatistics(t, c, 0)
}

// Sums from which most has gone are not stored: what has gone leaves its rounding.
func TestStatisticsThatHaveShrunk(t *testing.T) {
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(200, synth.Config{Seed: 9})
	opt := fit.Options{Bits: 32, Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{}}
	for _, m := range dbkit.PairsSchema.Modalities {
		opt.Features[m.Name], opt.Map[m.Name] = model.FeaturesRaw, model.MapLinear
	}
	for key, by := range map[string]float32{"long": 6e5, "longer than others": 2500} {
		it := *items[150]
		it.Key, it.Vectors = key, map[string][]float32{}
		for name, x := range items[150].Vectors {
			for _, v := range x {
				it.Vectors[name] = append(it.Vectors[name], by*v)
			}
		}
		w.put([]*db.Item{&it})
	}
	w.put(items[:100])
	dbkit.MustTrain(t, w.c, db.TrainOptions{Options: opt})
	for _, key := range []string{"long", "longer than others"} {
		if _, err := w.c.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
		dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
		w.reopen()
		checkStatistics(t, w.c, 0)
	}
}

// A space that is built slowly is complete when the items have codes that there were
// when it began, however many come meanwhile: these have codes already.
func TestReindexEndsWhileItemsCome(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(400, synth.Config{Seed: 9})
	putAll(t, c, items[:60])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	n := 0
	r, err := c.Reindex(ctx, db.ReindexOptions{Rate: 200, Progress: func(_ string, done, total int64) {
		if total != 60 || done > total {
			t.Errorf("%d of %d", done, total)
		}
		if n < 1000 { // more come in a block than there are in one
			putMany(t, c, items, n, 40)
			n += 40
		}
	}})
	if err != nil || r.Items != 60+n || n > 400 {
		t.Errorf("%+v, %v, after %d more items", r, err, n)
	}
	in, err := c.InSpace(r.Space)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range dbkit.AllItems(t, in) {
		if it.Code == nil {
			t.Errorf("item %s has no code", it.Key)
		}
	}
}

// putMany puts copies of items under other keys.
func putMany(t testing.TB, c *db.Collection, items []*db.Item, from, n int) {
	t.Helper()
	var more []*db.Item
	for i := from; i < from+n; i++ {
		it := *items[i%len(items)]
		it.Key = fmt.Sprint("more ", i)
		more = append(more, &it)
	}
	putAll(t, c, more)
}

// Growing labels ends with its context, and says of all labels when no direction is
// left.
func TestGrowingManyLabels(t *testing.T) {
	dbkit.LongTest(t)
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(100, synth.Config{Seed: 9})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	for i := range 500 {
		it := *items[i%100]
		it.Key, it.Labels = fmt.Sprint("n", i), []string{fmt.Sprint("label ", i)}
		putAll(t, c, []*db.Item{&it})
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Update(gone, db.UpdateOptions{GrowLabels: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	if len(u.Grown) != 12 || len(u.NoDirection) != 488 || u.Recoded != 12 {
		t.Errorf("%d labels have grown, %d have not, %d items have another code", len(u.Grown), len(u.NoDirection), u.Recoded)
	}
}
