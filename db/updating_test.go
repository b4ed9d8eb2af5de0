package db_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// activeSpace returns what is told of the active space.
func activeSpace(t testing.TB, c *db.Collection) report.SpaceInfo {
	t.Helper()
	all := need(c.Spaces(ctx))(t)
	for _, s := range all {
		if s.State == report.SpaceActive {
			return s
		}
	}
	t.Fatal("no space is active")
	return report.SpaceInfo{}
}

// eventually waits for something that happens in the background.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		stopIf(t, time.Now().After(end), "in five minutes not: %s", what)
	}
}

// What waited when the database was closed counts, and so does what has taught and is deleted.
func TestWhatStartsAnUpdate(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	opts := &db.Options{FS: fs, UpdateItems: 50}
	d := dbkit.MustOpen(t, "db", opts)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
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
	need(c.Delete(ctx, keys...))(t)
	eventually(t, "an update after 60 deletions", func() bool { return activeSpace(t, c).Revision > before })
	checkStatistics(t, c, 0)
	dbkit.MustClose(t, d)
}

// An update that has nothing to store is not repeated because others write.
func TestUpdatesThatRefuseAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	other := need(db.Of(c).CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(201, synth.Config{Seed: 9})
	putAll(t, c, items[:100])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for _, it := range items[100:] {
		it.Labels = nil
	}
	putAll(t, c, items[100:200])
	written := func() (n int) {
		must(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
			n = cv.Written
			return nil
		}))
		return n
	}
	n := written()
	failIf(t, n != 100, "%d items were written", n)
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	putAll(t, other, items[200:])
	n = written()
	failIf(t, n != 0, "%d items wait for an update that has looked at them", n)
}

// Items that lack the modality that teaches wait for another teacher.
func TestItemsThatOneTeacherSkips(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(400, synth.Config{Seed: 9})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i, it := range items[200:] {
		it.Labels = nil
		delete(it.Vectors, []string{"image", "text"}[i%2])
	}
	putAll(t, c, items[200:])
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherModality})
	failIf(t, u.Unlabelled != 100 || u.Skipped != 100, "%+v", u)
	u = dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	failIf(t, u.Unlabelled != 100, "%+v", u)
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
		need(w.c.Delete(ctx, key))(t)
		dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
		w.reopen()
		checkStatistics(t, w.c, 0)
	}
}

// A space that is built slowly is complete when the items have codes that there were
// when it began, however many come meanwhile: these have codes already.
func TestReindexEndsWhileItemsCome(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(400, synth.Config{Seed: 9})
	putAll(t, c, items[:60])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	n := 0
	r, err := c.Reindex(ctx, db.ReindexOptions{Rate: 200, Progress: func(_ string, done, total int64) {
		failIf(t, total != 60 || done > total, "%d of %d", done, total)
		if n < 1000 { // more come in a block than there are in one
			putMany(t, c, items, n, 40)
			n += 40
		}
	}})
	failIf(t, err != nil || r.Items != 60+n || n > 400, "%+v, %v, after %d more items", r, err, n)
	in := need(c.InSpace(r.Space, 0))(t)
	for _, it := range dbkit.AllItems(t, in) {
		failIf(t, it.Code == nil, "item %s has no code", it.Key)
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

// Growing labels ends with its context, and says of all labels when no direction is left.
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
	errorIs(t, errOf(c.Update(gone, db.UpdateOptions{GrowLabels: true})), context.Canceled)
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	failIf(t, len(u.Grown) != 12 || len(u.NoDirection) != 488 || u.Recoded != 12,
		"%d labels have grown, %d have not, %d items have another code", len(u.Grown), len(u.NoDirection),
		u.Recoded)
}

// Items like those of the training have next to no drift. Where the vectors come from another source, the
// update says that it is time to train again, and so does what is stored, also of a space that goes on from
// this one.
func TestDriftShowsThatTheDataHasChanged(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 1, Noise: 1.5})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	update := func(items []*db.Item) report.Drift {
		t.Helper()
		putAll(t, c, items)
		u, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
		stopIf(t, err != nil || u.Items != len(items), "%+v, %v", u, err)
		return u.Drift
	}
	drift, err := c.Drift(ctx)
	failIf(t, drift != nil || err != nil || drift.TrainAgain(), "before an update: %v, %v", drift, err)
	same := update(items[200:])
	failIf(t, len(same) != 2 || same["image"] > .05 || same["text"] > .05 || same.TrainAgain(),
		"of items like those of the training: %v", same)
	strange := func(from, to int) []*db.Item { // the labels of one item with the vectors of another
		some := dbkit.Pairs(to, synth.Config{Seed: 1, Noise: 1.5})
		for i, it := range some {
			it.Key = "s" + it.Key
			it.Vectors = dbkit.Pairs(to, synth.Config{Seed: 77, Noise: 1.5})[i].Vectors
		}
		return some[from:]
	}
	few := update(strange(0, 15))
	failIf(t, few != nil, "of 15 items: %v", few)
	got, err := c.Drift(ctx)
	failIf(t, err != nil || !cmp.Equal(got, same), "after an update of few items: %v, %v", got, err)
	other := update(strange(15, 75))
	failIf(t, len(other) != 2 || other["image"] < .4 || other["text"] < .4 || !other.TrainAgain(),
		"of other items: %v", other)
	// What is stored says so, too.
	check := func(what string) {
		t.Helper()
		got, err := c.Drift(ctx)
		if stats := statsOf(t, c).Drift; err != nil || !cmp.Equal(got, other) || !cmp.Equal(stats, other) {
			t.Errorf("%s: %v, %v, %v", what, got, stats, err)
		}
		var all []report.Drift
		for _, r := range spacesOf(t, c)[0].Revisions {
			all = append(all, r.Drift)
		}
		diff := cmp.Diff([]report.Drift{nil, same, nil, other}, all)
		failIf(t, diff != "", "%s: %s", what, diff)
	}
	check("updated")
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	check("reopened")
	need(c.Reindex(ctx, db.ReindexOptions{Activate: true}))(t)
	again := update(strange(75, 135))
	failIf(t, len(again) != 2 || !again.TrainAgain(), "in a space that goes on: %v", again)
}

// A label that has grown in this very update says nothing of drift: nothing has taught what it means.
func TestDriftOfLabelsThatGrow(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 1, Noise: 1.5})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	for _, it := range items[240:] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[200:])
	u, err := c.Update(ctx, db.UpdateOptions{GrowLabels: true})
	failIf(t, err != nil || len(u.Grown) != 1 || len(u.Drift) != 2 || u.Drift.TrainAgain(), "%+v, %v", u, err)
}

// Given codes have no model to be far from.
func TestDriftOfGivenCodes(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 8}))(t)
	drift, err := c.Drift(ctx)
	failIf(t, drift != nil || err == nil, "%v, %v", drift, err)
}

// With two hundred labelled items there are enough both to judge by and to leave in the
// statistics: items that teach well do so, and those that do harm do not.
func TestGuardOfFewLabelled(t *testing.T) {
	dbkit.LongTest(t)
	for _, c := range []struct {
		what  string
		cfg   synth.Config
		adopt bool
	}{
		{"teaches well", synth.Config{Classes: 24, Noise: 1}, true},
		{"does harm", synth.Config{Classes: 12, Noise: 2, LabelsPerItem: 3}, false},
	} {
		cfg := c.cfg
		cfg.Items, cfg.Dims, cfg.Seed = 1200, []int{24, 16}, 3
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 24}, {Name: "text", Dim: 16}}}
		col := need(d.CreateCollection(ctx, "main", schema))(t)
		data := synth.Pairs(cfg)
		var items []*db.Item
		for i := range cfg.Items {
			it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": data.Vectors[0][i],
				"text": data.Vectors[1][i]}}
			for _, l := range data.Labels[i] {
				it.Labels = append(it.Labels, fmt.Sprint(l))
			}
			items = append(items, it)
		}
		putAll(t, col, items[:200])
		dbkit.MustTrain(t, col, db.TrainOptions{Options: fit.Options{Bits: 32}})
		for _, it := range items[200:] {
			it.Labels = nil
		}
		putAll(t, col, items[200:])
		if u := dbkit.MustUpdate(t, col, db.UpdateOptions{}); u.Revised != c.adopt ||
			(u.Adopted.Unlabelled == "modality") != c.adopt || (u.Refused == 1000) == c.adopt {
			t.Errorf("%s: %+v", c.what, u)
		} else {
			t.Log(c.what, u.Reason)
		}
		// Labelled items teach in any case, which is no adoption of the others.
		more := []*db.Item{{Key: "more", Labels: []string{fmt.Sprint(data.Labels[0][0])},
			Vectors: items[0].Vectors}}
		putAll(t, col, more)
		u := dbkit.MustUpdate(t, col, db.UpdateOptions{})
		refused := map[bool]int{false: 1000}[c.adopt]
		failIf(t, !u.Revised || u.Adopted != (report.Adoption{Labelled: "labels"}) || u.Refused != refused ||
			u.Skipped != refused, "%s: with a labelled item: %+v", c.what, u)
		dbkit.MustClose(t, d)
	}
}
