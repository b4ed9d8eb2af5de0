package db_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// While DeleteWhere reads the items, as a field has no index, others write, and what they have
// written by its commit decides what is deleted.
func TestDeleteWhereReadsBesideWrites(t *testing.T) {
	for _, where := range []string{"price < 10", "NOT price >= 10", "new = true AND price < 10", "label = 'gone' OR price < 10"} {
		t.Run(where, func(t *testing.T) { deleteBesideWrites(t, where) })
	}
}

func deleteBesideWrites(t *testing.T, where string) {
	reading, goOn := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		// The store reads tables of its own accord, too: it is the scan that is held.
		if op.Kind == errorfs.OpFileReadAt && hold.Load() && strings.Contains(string(debug.Stack()), "fieldScan") && hold.CompareAndSwap(true, false) {
			close(reading)
			<-goOn
		}
		return nil
	}))})
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	item := func(i, price int) *db.Item {
		// A payload that fills blocks of a table, so that to write one item is not to read another.
		return &db.Item{Key: fmt.Sprintf("k%02d", i), Payload: make([]byte, 40<<10), Fields: map[string]any{"price": float64(price), "new": true}}
	}
	var items []*db.Item
	for i := range 20 {
		items = append(items, item(i, i))
	}
	putAll(t, c, items)
	if err := db.State(d).Engine.DB.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, it := range items { // so that the store has read where items are, and nothing of them
		if there, err := c.Has(ctx, it.Key); !there || err != nil {
			t.Fatal(there, err)
		}
	}
	hold.Store(true)
	deleted, written := make(chan error), make(chan error, 1)
	n := 0
	go func() {
		var err error
		n, err = c.DeleteWhere(ctx, where)
		deleted <- err
	}()
	<-reading
	go func() {
		write := func() error {
			for _, it := range []*db.Item{item(3, 30), item(13, 3), item(20, 2), item(21, 22)} { // two of them new
				if _, err := c.Put(ctx, it); err != nil {
					return err
				}
			}
			if _, err := c.Merge(ctx, &db.Item{Key: "k04", Fields: map[string]any{"price": 40.}}); err != nil {
				return err
			}
			if _, err := c.Merge(ctx, &db.Item{Key: "k05", Labels: []string{"other"}}); err != nil {
				return err
			}
			return dbkit.Second(c.Delete(ctx, "k06"))
		}
		written <- write()
	}()
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("writers wait until all items are read")
	}
	close(goOn)
	if err := <-deleted; err != nil || n != 9 { // k00 to k09 but for k03, k04 and k06, and k13 and k20
		t.Errorf("%d deleted, %v", n, err)
	}
	var left []string
	for _, it := range dbkit.AllItems(t, c) {
		left = append(left, it.Key)
	}
	slices.Sort(left)
	if want := "[k03 k04 k10 k11 k12 k14 k15 k16 k17 k18 k19 k21]"; fmt.Sprint(left) != want {
		t.Errorf("left are %v, want %s", left, want)
	}
}
