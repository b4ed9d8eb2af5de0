package db_test

import (
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// BenchmarkOrder takes the first ten of 200,000 items that share 20 codes, 10,000 each, in
// each order that does not read features.
func BenchmarkOrder(b *testing.B) {
	d := dbkit.MustOpen(b, b.TempDir(), nil)
	b.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		b.Fatal(err)
	}
	items := dbkit.Pairs(200_000, synth.Config{Classes: 20})
	batch := d.NewBatch()
	for _, it := range items {
		if err := batch.Put(c, it); err != nil {
			b.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Train(ctx, db.TrainOptions{Options: model.Options{Bits: 64, Anchors: 20}, Rows: 1000}); err != nil {
		b.Fatal(err)
	}
	for _, order := range []db.Rerank{db.RerankNone, db.RerankProjection, db.RerankAsymmetric} {
		b.Run(order.String(), func(b *testing.B) {
			q := db.Query{From: "text", To: "image", K: 10, Rerank: order}
			for i := 0; b.Loop(); i++ {
				q.Vector = items[i%100].Vectors["text"]
				if _, err := c.Search(ctx, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
