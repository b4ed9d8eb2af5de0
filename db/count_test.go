package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A count that has a limit ends there: what comes after is not even read.
func TestCountUpTo(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
	const n = 1<<16 + 10
	b := d.NewBatch()
	for i := range n {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}
		if i%2 == 1 {
			it.Labels = []string{"odd"}
		}
		b.Put(c, it)
	}
	must(t, b.Commit(ctx))
	for _, limit := range []int{1, 7, n/2 - 1, n / 2, n/2 + 1, n, 2 * n} {
		for where, matches := range map[string]int{"": n, "label = 'odd'": n / 2, "label = 'even'": 0} {
			if got, err := c.CountUpTo(ctx, limit, where); err != nil || got != min(matches, limit) {
				t.Errorf("%q up to %d: %d, %v", where, limit, got, err)
			}
		}
	}
	for _, limit := range []int{0, -1} {
		if _, err := c.CountUpTo(ctx, limit, ""); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("up to %d: %v", limit, err)
		}
	}
	if _, err := c.CountUpTo(ctx, 1, "year = 1"); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	must(t, db.State(d).Engine.DB.Set(codec.RowsKey(db.Inside(c).ID, codec.SetLabel, 0, 1), []byte("damage"), nil))
	if _, err := c.Put(ctx, &db.Item{Key: "0", Code: []byte{1}}); err != nil { // so that it is seen
		t.Fatal(err)
	}
	if got, err := c.CountUpTo(ctx, 1<<15, "label = 'odd'"); err != nil || got != 1<<15 {
		t.Errorf("%d, %v", got, err)
	}
	for _, limit := range []int{1<<15 + 1, n} {
		if got, err := c.CountUpTo(ctx, limit, "label = 'odd'"); !errors.Is(err, db.ErrCorrupt) || got != 0 {
			t.Errorf("%d, %v", got, err)
		}
	}
}
