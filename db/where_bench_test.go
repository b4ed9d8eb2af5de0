package db_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// benchFiltered makes a collection of n items with labels and fields, which are indexed or not.
func benchFiltered(b *testing.B, n int, indexed bool) *db.Collection {
	d := dbkit.MustOpen(b, b.TempDir(), &db.Options{NoSync: true})
	b.Cleanup(func() { dbkit.MustClose(b, d) })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64, Fields: []db.Field{
		{"year", db.Int, indexed}, {"price", db.Float, indexed}, {"maker", db.String, indexed}, {"sku", db.String, indexed}, {"new", db.Bool, indexed},
	}}))(b)
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < n; {
		batch := d.NewBatch()
		for ; i < n && batch.Len() < 20_000; i++ {
			must(b, batch.Put(c, benchItem(r, i)))
		}
		must(b, batch.Commit(ctx))
	}
	return c
}

func benchItem(r *rand.Rand, i int) *db.Item {
	code := make([]byte, 8)
	for j := range code {
		code[j] = byte(r.Uint32())
	}
	return &db.Item{
		Key: fmt.Sprint("item ", i), Code: code, Labels: []string{fmt.Sprint("label ", r.IntN(10))},
		Fields: map[string]any{
			"year": 1990 + r.IntN(40), "price": 1000 * r.Float64(), "maker": fmt.Sprint("maker ", r.IntN(100)),
			"sku": fmt.Sprintf("%08x", r.Uint32()), "new": r.IntN(2) == 0,
		},
	}
}

func BenchmarkWhere(b *testing.B) {
	c := benchFiltered(b, 1_000_000, true)
	for _, where := range []string{
		"label = 'label 3'", "label IN ('label 3', 'label 4') AND NOT label = 'label 5'",
		"year = 2020", "year >= 2000 AND year < 2010", "year IN (1995, 2005, 2015)", "price < 100", "price >= 123.45 AND price <= 678.9",
		"new = true", "maker = 'maker 42'", "maker >= 'maker 4' AND maker < 'maker 5'", "sku = '0badf00d'", "sku < '01'",
		"label = 'label 3' AND year >= 2010 AND price < 100",
	} {
		b.Run(where, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = need(c.CountWhere(ctx, where))(b)
			}
			b.ReportMetric(float64(n), "rows")
		})
	}
	b.Run("up to 10", func(b *testing.B) {
		for b.Loop() {
			need(c.CountUpTo(ctx, 10, "label = 'label 3' AND year >= 2010 AND price < 100"))(b)
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			need(c.Search(ctx, db.Query{Code: make([]byte, 8), Where: "label = 'label 3' AND year >= 2010"}))(b)
		}
	})
}
