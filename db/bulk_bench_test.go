package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// BenchmarkBulkLoad stores items with codes and automatic keys in one batch of a new
// collection.
func BenchmarkBulkLoad(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			codes := dbkit.RandomCodes(n, 128, 1)
			d := dbkit.MustOpen(b, b.TempDir(), nil)
			defer d.Close()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c := need(d.CreateCollection(ctx, fmt.Sprintf("c%d", i), db.Schema{Bits: 128}))(b)
				i++
				batch := d.NewBatch()
				for _, code := range codes {
					must(b, batch.Put(c, &db.Item{Code: code}))
				}
				must(b, batch.Commit(ctx))
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}
