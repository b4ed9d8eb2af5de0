package db_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

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

// A heldContext holds the goroutine that asks it, in a function of that name, whether it is cancelled:
// once, until it may go on. A goroutine that is held in a read of a file may be the one that opens a table,
// and all that need the table wait for it, writers too.
type heldContext struct {
	context.Context
	in          string
	is          *atomic.Bool
	there, goOn chan struct{}
}

func heldIn(function string) heldContext {
	return heldContext{ctx, function, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
}

func (c heldContext) Err() error {
	if strings.Contains(string(debug.Stack()), c.in) && c.is.CompareAndSwap(false, true) {
		close(c.there)
		<-c.goOn
	}
	return c.Context.Err()
}

func deleteBesideWrites(t *testing.T, where string) {
	item := func(i, price int) *db.Item {
		return &db.Item{Key: fmt.Sprintf("k%02d", i), Fields: map[string]any{"price": float64(price), "new": true}}
	}
	var items []*db.Item
	for i := range 20 {
		items = append(items, item(i, i))
	}
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	held := heldIn("fieldScan")
	deleted, written := make(chan error), make(chan error, 1)
	n := 0
	go func() {
		var err error
		n, err = c.DeleteWhere(held, where)
		deleted <- err
	}()
	<-held.there
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
	close(held.goOn)
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
