package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Every way to write through a snapshot is refused and changes nothing.
func TestSnapshotsAreReadOnly(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	live := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	need(live.Put(ctx, &db.Item{Key: "a", Code: []byte{1, 2}}))(t)
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	c := need(snap.Collection("main"))(t)
	for what, write := range map[string]func() error{
		"put":         func() error { return dbkit.Second(c.Put(ctx, &db.Item{Key: "b", Code: []byte{1, 2}})) },
		"merge":       func() error { return dbkit.Second(c.Merge(ctx, &db.Item{Key: "a", Code: []byte{1, 2}})) },
		"delete":      func() error { _, err := c.Delete(ctx, "a"); return err },
		"deleteWhere": func() error { _, err := c.DeleteWhere(ctx, "NOT label = ''"); return err },
		"train":       func() error { _, err := c.Train(ctx, db.TrainOptions{}); return err },
	} {
		if err := write(); !errors.Is(err, db.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n, err := live.Count(); n != 1 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
}

// Deleting by an expression right after opening waits for the codes.
func TestDeleteWhereRightAfterOpening(t *testing.T) {
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 32}))(t)
	b := d.NewBatch()
	for i := range state.LoadAtOnce + 50 {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), byte(i >> 8), byte(i >> 16), 7}}
		if i%1000 == 0 {
			it.Labels = []string{"rare"}
		}
		must(t, b.Put(c, it))
	}
	must(t, b.Commit(ctx))
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, nil)
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	if n, err := c.DeleteWhere(ctx, "label = 'rare'"); n != 11 || err != nil {
		t.Fatalf("%d deleted, %v", n, err)
	}
	if n, err := c.Count(); n != state.LoadAtOnce+39 || err != nil {
		t.Errorf("%d items, %v", n, err)
	}
}

// A batch that begins with thousands of labels keeps the codes of its items.
func TestLabelsBeforeAFewItems(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	b := d.NewBatch()
	for i := range bulkItems - 1 {
		must(t, b.RegisterLabels(c, []string{fmt.Sprint("l", i)}))
	}
	for i := range 10 {
		must(t, b.Put(c, &db.Item{Code: []byte{byte(i), 1}}))
	}
	must(t, b.Commit(ctx))
	r, err := c.Search(ctx, db.Query{Code: []byte{3, 1}})
	if err != nil || len(r.Hits) != 10 || r.Hits[0].Key != "3" {
		t.Errorf("%+v, %v", r, err)
	}
}
