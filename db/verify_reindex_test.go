package db_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Nothing is found in a space that was made of the revision of another, while it is made
// and afterwards, nor when a space and a collection are gone.
func TestVerifyReindexed(t *testing.T) {
	dbkit.LongTest(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(260, synth.Config{Seed: 3, Missing: .1})
	for i, it := range items {
		if i%4 == 0 {
			it.Labels = nil
		}
	}
	putAll(t, c, items[:100])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i := range 3 {
		putAll(t, c, items[100+40*i:140+40*i])
		dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	}
	putAll(t, c, items[220:240])
	if _, err := c.Delete(ctx, "k3", "k101", "k225"); err != nil {
		t.Fatal(err)
	}
	calls := 0
	r, err := c.Reindex(ctx, db.ReindexOptions{Activate: true, Progress: func(string, int64, int64) {
		dbkit.CheckSound(t, d, "being reindexed")
		if calls == 8 {
			return
		}
		putAll(t, c, items[240+calls:242+calls])
		putAll(t, c, items[50+calls:51+calls])
		dbkit.CheckSound(t, d, "being reindexed and written to")
		calls++
	}})
	if err != nil || calls == 0 || !r.Active {
		t.Fatalf("%+v, %v, %d calls", r, err, calls)
	}
	dbkit.CheckSound(t, d, "reindexed")
	putAll(t, c, items[:20])
	dbkit.MustUpdate(t, c, db.UpdateOptions{})
	dbkit.CheckSound(t, d, "updated")
	if err := c.DropSpace(ctx, r.Parent); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "a space dropped")
	if err := d.DropCollection(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if v := dbkit.CheckSound(t, d, "the collection dropped"); v.Items != 0 {
		t.Errorf("%+v", v)
	}
}
