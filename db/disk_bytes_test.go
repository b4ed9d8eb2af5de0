package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// What a collection has on disk is about what the database would take with that collection alone,
// whatever else is in the same tables: for a large one and for many small ones.
func TestDiskBytes(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	const small = 20
	var all []*db.Collection
	for i := range small + 1 {
		c := need(d.CreateCollection(ctx, fmt.Sprint("c", i), db.Schema{Bits: 64}))(t)
		items, size := 3, 100
		if i == 0 {
			items, size = 3000, 1000
		}
		b := d.NewBatch()
		for j := range items {
			payload := make([]byte, size)
			for k := range payload { // not to be compressed
				payload[k] = byte((i + 1) * (j + 3) * (k + 7) * (k + j) >> 3)
			}
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint("k", j), Code: payload[:8], Payload: payload}))
		}
		must(t, b.Commit(ctx))
		all = append(all, c)
	}
	for _, when := range []string{"in the log", "in tables"} {
		sum := int64(0)
		for i, c := range all {
			n := need(c.DiskBytes(ctx))(t)
			sum += n
			if i > 0 && (n < 300 || n > 10_000) {
				t.Errorf("%s: 3 items of 100 bytes take %d", when, n)
			}
			if i == 0 && when == "in tables" && (n < 1_000_000 || n > 6_000_000) {
				t.Errorf("%s: 3000 items of 1000 bytes take %d", when, n)
			}
		}
		must(t, d.Compact(ctx))
		s := need(d.Stats())(t)
		if when == "in tables" && sum > s.DiskBytes {
			t.Errorf("%d bytes in all collections, %d in the database", sum, s.DiskBytes)
		}
	}
	must(t, d.DropCollection(ctx, "c0"))
	if _, err := all[0].DiskBytes(ctx); err == nil {
		t.Error("a collection that is gone has a size")
	}
}
