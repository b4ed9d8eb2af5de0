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

// BenchmarkWhereScanned is of fields without an index.
func BenchmarkWhereScanned(b *testing.B) {
	c := benchFiltered(b, 1_000_000, false)
	for _, where := range []string{
		"year = 2020", "price < 100", "new = true", "maker = 'maker 42'", "sku < '01'", "has(sku)", "year >= 2010 AND price < 100 AND sku LIKE 'a%'",
		"label = 'label 3' AND year >= 2010", "label = 'label 3' AND label = 'label 4' AND year >= 2010",
	} {
		b.Run(where, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = need(c.CountWhere(ctx, where))(b)
			}
			b.ReportMetric(float64(n), "rows")
		})
	}
}

// BenchmarkFacets counts a million items by label and by fields with and without an index: all, those
// that match a filter, and the hits of a search. count is a plain count, and the search one without
// facets, to compare with.
func BenchmarkFacets(b *testing.B) {
	for _, indexed := range []bool{true, false} {
		c := benchFiltered(b, 1_000_000, indexed)
		run := func(name string, f func() error) {
			b.Run(fmt.Sprintf("indexed=%t/%s", indexed, name), func(b *testing.B) {
				for b.Loop() {
					must(b, f())
				}
			})
		}
		for of, where := range map[string]string{"all": "", "tenth": "label = 'label 3'"} {
			run(of+"/count", func() error {
				_, err := c.CountWhere(ctx, where)
				return err
			})
			for _, by := range []string{"label", "new", "year", "price", "maker", "sku"} {
				run(of+"/"+by, func() error {
					_, err := c.Facets(ctx, db.FacetQuery{By: by, Where: where, Limit: 8})
					return err
				})
			}
		}
		run("hits/search", func() error {
			_, err := c.Search(ctx, db.Query{Code: make([]byte, 8), K: 24})
			return err
		})
		for _, by := range []string{"label", "new", "year", "price", "maker", "sku"} {
			run("hits/"+by, func() error {
				_, err := c.Search(ctx, db.Query{Code: make([]byte, 8), K: 24, Facets: []string{by}, FacetLimit: 8})
				return err
			})
		}
	}
}

// BenchmarkPutIndexed is what labels and indexed fields add to a Put: of new items,
// one by one and in batches, and of items that replace others.
func BenchmarkPutIndexed(b *testing.B) {
	for _, bc := range []struct {
		name   string
		labels bool
		fields []db.Field
	}{
		{"plain", false, nil},
		{"labels", true, nil},
		{"unindexed", false, []db.Field{{"year", db.Int, false}, {"price", db.Float, false}}},
		{"int", false, []db.Field{{"year", db.Int, true}}},
		{"float", false, []db.Field{{"price", db.Float, true}}},
		{"string", false, []db.Field{{"maker", db.String, true}}},
		{"unique", false, []db.Field{{"sku", db.String, true}}},
	} {
		b.Run(bc.name+"/one", func(b *testing.B) { benchPut(b, bc.labels, bc.fields, 1, false) })
		b.Run(bc.name+"/batch", func(b *testing.B) { benchPut(b, bc.labels, bc.fields, 1000, false) })
		b.Run(bc.name+"/replace", func(b *testing.B) { benchPut(b, bc.labels, bc.fields, 1000, true) })
	}
}

func benchPut(b *testing.B, labels bool, fields []db.Field, size int, replace bool) {
	d := dbkit.MustOpen(b, b.TempDir(), &db.Options{NoSync: true})
	b.Cleanup(func() { dbkit.MustClose(b, d) })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64, Fields: fields}))(b)
	r := rand.New(rand.NewPCG(1, 2))
	next := 0
	commit := func(size int) {
		batch := d.NewBatch()
		for range size {
			it := benchItem(r, next)
			if next++; replace {
				next %= 20_000
			}
			if !labels {
				it.Labels = nil
			}
			all := it.Fields
			it.Fields = map[string]any{}
			for _, f := range fields {
				it.Fields[f.Name] = all[f.Name]
			}
			must(b, batch.Put(c, it))
		}
		must(b, batch.Commit(ctx))
	}
	if replace {
		commit(20_000)
	}
	for b.Loop() {
		commit(size)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/item")
}
