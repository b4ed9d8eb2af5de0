package db_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// orderItems bounds the sets of BenchmarkOrder.
var orderItems = flag.Int("order.items", 200_000, "items of the largest set of BenchmarkOrder: 200000 or 1000000")

// BenchmarkOrder takes the first and the second ten of items that share few codes, in each
// order that does not read features; and what encoding the query takes of that. Projections
// are in memory, or, by the name store, are not. With -order.items 1000000 the million is measured, too.
func BenchmarkOrder(b *testing.B) {
	for _, set := range []struct {
		name          string
		items         int
		classes, each int
	}{
		{"200k-20", 200_000, 20, 1},
		{"200k-5000", 200_000, 32, 3},
		{"1M-20", 1_000_000, 20, 1},
	} {
		if set.items > *orderItems {
			continue
		}
		dir := b.TempDir()
		d := dbkit.MustOpen(b, dir, nil)
		c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
		if err != nil {
			b.Fatal(err)
		}
		data := synth.NewStream(synth.Config{Classes: set.classes, LabelsPerItem: set.each, Dims: []int{8, 5}})
		var queries [][]float32
		for done := 0; done < set.items; {
			batch := d.NewBatch()
			for range min(50_000, set.items-done) {
				x, labels := data.Next()
				it := &db.Item{Key: fmt.Sprint(done), Vectors: map[string][]float32{"image": x[0], "text": x[1]}}
				for _, l := range labels {
					it.Labels = append(it.Labels, fmt.Sprint(l))
				}
				if len(queries) < 100 {
					queries = append(queries, x[1])
				}
				if err := batch.Put(c, it); err != nil {
					b.Fatal(err)
				}
				done++
			}
			if err := batch.Commit(ctx); err != nil {
				b.Fatal(err)
			}
		}
		opt := fit.Options{Bits: 64, Anchors: max(20, set.classes)}
		if _, err := c.Train(ctx, db.TrainOptions{Options: opt, Rows: 10_000}); err != nil {
			b.Fatal(err)
		}
		for _, of := range []struct {
			name   string
			budget int64
		}{{"store", -1}, {"memory", 0}} {
			dbkit.MustClose(b, d)
			d = dbkit.MustOpen(b, dir, &db.Options{RerankCacheBytes: of.budget})
			c = dbkit.MustCollection(b, d, "main")
			if err := d.WaitForIndex(ctx); err != nil {
				b.Fatal(err)
			}
			for _, order := range []db.Rerank{db.RerankNone, db.RerankProjection, db.RerankAsymmetric} {
				if of.budget < 0 && order == db.RerankNone {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%v", set.name, of.name, order), func(b *testing.B) {
					q := db.Query{From: "text", To: "image", K: 10, Rerank: order}
					for i := 0; b.Loop(); i++ {
						q.Vector = queries[i%len(queries)]
						if _, err := c.Search(ctx, q); err != nil {
							b.Fatal(err)
						}
					}
				})
				b.Run(fmt.Sprintf("%s/%s/%v-page2", set.name, of.name, order), func(b *testing.B) {
					q := db.Query{From: "text", To: "image", K: 10, Rerank: order}
					var after []string
					for _, q.Vector = range queries {
						first, err := c.Search(ctx, q)
						if err != nil {
							b.Fatal(err)
						}
						after = append(after, first.Next)
					}
					for i := 0; b.Loop(); i++ {
						q.Vector, q.After = queries[i%len(queries)], after[i%len(queries)]
						if _, err := c.Search(ctx, q); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
		b.Run(set.name+"/all-64", func(b *testing.B) { // a time is of 64 queries
			asked := make([]db.Query, 64)
			for i := range asked {
				asked[i] = db.Query{From: "text", Vector: queries[i], K: 10, Rerank: db.RerankProjection}
			}
			for b.Loop() {
				if _, err := c.SearchAll(ctx, asked); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(set.name+"/encode", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, _, err := c.EncodeQuery(ctx, db.Query{From: "text", Vector: queries[i%len(queries)]}); err != nil {
					b.Fatal(err)
				}
			}
		})
		dbkit.MustClose(b, d)
	}
}

// BenchmarkVectorsInCodes takes the first ten of 40,000 items of 384 dimensions by vectors within codes, as auto
// does, and in other orders; with vectors in memory at 8 bits, or, by the name store, without.
func BenchmarkVectorsInCodes(b *testing.B) {
	const n, dims = 40_000, 384
	dir := b.TempDir()
	d := dbkit.MustOpen(b, dir, nil)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: dims}}})
	if err != nil {
		b.Fatal(err)
	}
	data := synth.NewStream(synth.Config{Classes: 20, Noise: 1, Dims: []int{dims}})
	var queries [][]float32
	for done := 0; done < n; {
		batch := d.NewBatch()
		for range 20_000 {
			x, labels := data.Next()
			if len(queries) < 100 {
				queries = append(queries, x[0])
			}
			it := &db.Item{Key: fmt.Sprint(done), Vectors: map[string][]float32{"image": x[0]}, Labels: []string{fmt.Sprint(labels[0])}}
			if err := batch.Put(c, it); err != nil {
				b.Fatal(err)
			}
			done++
		}
		if err := batch.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 20}, Rows: 4000}); err != nil {
		b.Fatal(err)
	}
	search := func(b *testing.B, order db.Rerank) {
		for i := 0; b.Loop(); i++ {
			if _, err := c.Search(ctx, db.Query{From: "image", Vector: queries[i%len(queries)], K: 10, Rerank: order}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, of := range []struct {
		name   string
		budget int64
	}{{"store", -1}, {"memory", 0}} {
		dbkit.MustClose(b, d)
		d = dbkit.MustOpen(b, dir, &db.Options{RerankCacheBytes: of.budget})
		c = dbkit.MustCollection(b, d, "main")
		if _, err := c.Search(ctx, db.Query{From: "image", Vector: queries[0]}); err != nil {
			b.Fatal(err)
		}
		if err := d.WaitForIndex(ctx); err != nil {
			b.Fatal(err)
		}
		for _, order := range []db.Rerank{db.RerankAuto, db.RerankProjection, db.RerankNone} {
			b.Run(of.name+"/"+order.String(), func(b *testing.B) { search(b, order) })
		}
	}
	b.Run("encode", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, _, err := c.EncodeQuery(ctx, db.Query{From: "image", Vector: queries[i%len(queries)]}); err != nil {
				b.Fatal(err)
			}
		}
	})
	dbkit.MustClose(b, d)
}
