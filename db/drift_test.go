package db_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Items like those of the training have next to no drift. Where the vectors come from another source, the
// update says that it is time to train again, and so does what is stored, also of a space that goes on from
// this one.
func TestDriftShowsThatTheDataHasChanged(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 1, Noise: 1.5})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	update := func(items []*db.Item) db.Drift {
		t.Helper()
		putAll(t, c, items)
		u, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
		if err != nil || u.Items != len(items) {
			t.Fatalf("%+v, %v", u, err)
		}
		return u.Drift
	}
	if drift, err := c.Drift(ctx); drift != nil || err != nil || drift.TrainAgain() {
		t.Errorf("before an update: %v, %v", drift, err)
	}
	same := update(items[200:])
	if len(same) != 2 || same["image"] > .05 || same["text"] > .05 || same.TrainAgain() {
		t.Errorf("of items like those of the training: %v", same)
	}
	strange := func(from, to int) []*db.Item { // the labels of one item with the vectors of another
		some := dbkit.Pairs(to, synth.Config{Seed: 1, Noise: 1.5})
		for i, it := range some {
			it.Key = "s" + it.Key
			it.Vectors = dbkit.Pairs(to, synth.Config{Seed: 77, Noise: 1.5})[i].Vectors
		}
		return some[from:]
	}
	if few := update(strange(0, 15)); few != nil {
		t.Errorf("of 15 items: %v", few)
	}
	if got, err := c.Drift(ctx); err != nil || !cmp.Equal(got, same) {
		t.Errorf("after an update of few items: %v, %v", got, err)
	}
	other := update(strange(15, 75))
	if len(other) != 2 || other["image"] < .4 || other["text"] < .4 || !other.TrainAgain() {
		t.Errorf("of other items: %v", other)
	}
	// What is stored says so, too.
	check := func(what string) {
		t.Helper()
		got, err := c.Drift(ctx)
		if stats := statsOf(t, c).Drift; err != nil || !cmp.Equal(got, other) || !cmp.Equal(stats, other) {
			t.Errorf("%s: %v, %v, %v", what, got, stats, err)
		}
		var all []db.Drift
		for _, r := range spacesOf(t, c)[0].Revisions {
			all = append(all, r.Drift)
		}
		if diff := cmp.Diff([]db.Drift{nil, same, nil, other}, all); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	check("updated")
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, db.State(d).Engine.Dir, nil)
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	check("reopened")
	if _, err := c.Reindex(ctx, db.ReindexOptions{Activate: true}); err != nil {
		t.Fatal(err)
	}
	if again := update(strange(75, 135)); len(again) != 2 || !again.TrainAgain() {
		t.Errorf("in a space that goes on: %v", again)
	}
}

// A label that has grown in this very update says nothing of drift: nothing has taught what it means.
func TestDriftOfLabelsThatGrow(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{Seed: 1, Noise: 1.5})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	for _, it := range items[240:] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[200:])
	u, err := c.Update(ctx, db.UpdateOptions{GrowLabels: true})
	if err != nil || len(u.Grown) != 1 || len(u.Drift) != 2 || u.Drift.TrainAgain() {
		t.Errorf("%+v, %v", u, err)
	}
}

// Given codes have no model to be far from.
func TestDriftOfGivenCodes(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 8})
	if err != nil {
		t.Fatal(err)
	}
	if drift, err := c.Drift(ctx); drift != nil || err == nil {
		t.Errorf("%v, %v", drift, err)
	}
}
