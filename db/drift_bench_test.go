package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// BenchmarkDrift measures what the drift of a sample costs, and Stats,
// in a collection of items of two modalities of 128 dimensions, most of which have codes
// of their own: 128 bits, 800 anchors.
func BenchmarkDrift(b *testing.B) {
	for _, n := range []int{10_000, 90_000, 200_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			d := dbkit.MustOpen(b, b.TempDir(), nil)
			defer d.Close()
			c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}})
			if err != nil {
				b.Fatal(err)
			}
			data := synth.Pairs(synth.Config{Items: n, Classes: 60, Dims: []int{128, 128}, Noise: 3})
			batch := d.NewBatch()
			for i := range n {
				x := data.Item(i)
				it := &db.Item{Vectors: map[string][]float32{"image": x[0], "text": x[1]}}
				if i%10 == 0 {
					it.Labels = []string{fmt.Sprint(data.Labels[i])}
				}
				if err := batch.Put(c, it); err != nil {
					b.Fatal(err)
				}
			}
			if err := batch.Commit(ctx); err != nil {
				b.Fatal(err)
			}
			maps := map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}
			dbkit.MustTrain(b, c, db.TrainOptions{Rows: 2000, Options: fit.Options{Bits: 128, Anchors: 800, Map: maps}})
			if err := d.WaitForIndex(ctx); err != nil {
				b.Fatal(err)
			}
			v, done, err := db.State(d).Acquire()
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			cv, _ := v.Collections.Get(db.Inside(c).ID)
			b.Run("measure", func(b *testing.B) {
				for b.Loop() {
					if _, err := learn.DriftOf(ctx, v, cv, cv.Live); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(cv.Codes.Codes), "codes")
			})
			b.Run("stats", func(b *testing.B) {
				for b.Loop() {
					if _, err := db.StatsOf(v, cv); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
