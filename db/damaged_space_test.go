package db_test

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Damage in the codes of a space that stands by concerns it alone: the database opens,
// the others are searched, and writes go on when it has been dropped. What loading it has
// found is not searched past.
func TestDamagedSpaceCanBeDropped(t *testing.T) {
	dbkit.LongTest(t)
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	other := need(d.CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(60, synth.Config{})
	putAll(t, c, items)
	dbkit.MustTrain(t, c, db.TrainOptions{})
	dbkit.MustTrain(t, c, db.TrainOptions{})
	want := need(c.Search(ctx, db.Query{Key: "k7"}))(t)
	for key := range storeKeys(t, d) {
		if kind := key[0]; kind == codec.KindCodes && key[8] == 1 { // of the first space
			must(t, db.State(d).Engine.DB.Delete(key, nil))
		}
	}
	dbkit.MustClose(t, d)

	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	c, other = dbkit.MustCollection(t, d, "main"), dbkit.MustCollection(t, d, db.Inside(other).Name)
	if got, err := c.Search(ctx, db.Query{Key: "k7"}); err != nil || len(got.Hits) != len(want.Hits) || got.Hits[3].Key != want.Hits[3].Key {
		t.Errorf("in the space that is whole: %+v, %v", got, err)
	}
	for what, err := range map[string]error{
		"search":   dbkit.Second(c.Search(ctx, db.Query{Key: "k7", Space: 1})),
		"put":      dbkit.Second(c.Put(ctx, items[0])),
		"activate": c.Activate(ctx, 1),
		"train":    dbkit.Second(c.Train(ctx, db.TrainOptions{})),
	} {
		if !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := other.Put(ctx, items[0]); err != nil {
		t.Error(err)
	}
	must(t, c.DropSpace(ctx, 1))
	if _, err := c.Put(ctx, items[0]); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	dbkit.MustTrain(t, c, db.TrainOptions{})
	checkSpaces(t, d)
}
