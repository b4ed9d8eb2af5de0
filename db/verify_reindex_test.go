package db

import (
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// Nothing is found in a space that was made of the revision of another, while it is made
// and afterwards, nor when a space and a collection are gone.
func TestVerifyReindexed(t *testing.T) {
	longTest(t)
	d, c := openPairs(t)
	items := pairs(260, synth.Config{Seed: 3, Missing: .1})
	for i, it := range items {
		if i%4 == 0 {
			it.Labels = nil
		}
	}
	putAll(t, c, items[:100])
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 32, Anchors: 20}})
	for i := range 3 {
		putAll(t, c, items[100+40*i:140+40*i])
		mustUpdate(t, c, UpdateOptions{Teacher: TeacherSelf})
	}
	putAll(t, c, items[220:240])
	if _, err := c.Delete(ctx, "k3", "k101", "k225"); err != nil {
		t.Fatal(err)
	}
	calls := 0
	r, err := c.Reindex(ctx, ReindexOptions{Activate: true, Progress: func(string, int64, int64) {
		checkSound(t, d, "being reindexed")
		if calls == 8 {
			return
		}
		putAll(t, c, items[240+calls:242+calls])
		putAll(t, c, items[50+calls:51+calls])
		checkSound(t, d, "being reindexed and written to")
		calls++
	}})
	if err != nil || calls == 0 || !r.Active {
		t.Fatalf("%+v, %v, %d calls", r, err, calls)
	}
	checkSound(t, d, "reindexed")
	putAll(t, c, items[:20])
	mustUpdate(t, c, UpdateOptions{})
	checkSound(t, d, "updated")
	if err := c.DropSpace(ctx, r.Parent); err != nil {
		t.Fatal(err)
	}
	checkSound(t, d, "a space dropped")
	if err := d.DropCollection(ctx, "main"); err != nil {
		t.Fatal(err)
	}
	if v := checkSound(t, d, "the collection dropped"); v.Items != 0 {
		t.Errorf("%+v", v)
	}
}
