package db_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// BenchmarkUntrained takes the first ten of collections that are not trained: vectors of topics with
// Zipf's weights, a decaying spectrum, a common offset, and length 1.
func BenchmarkUntrained(b *testing.B) {
	for _, of := range []struct{ n, dim int }{{20_000, 512}, {100_000, 384}} {
		d := dbkit.MustOpen(b, b.TempDir(), nil)
		c := need(d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: of.dim}}}))(b)
		r := rand.New(rand.NewPCG(1, 1))
		const topics = 2000
		centres := make([][]float32, topics)
		draw := func() []float32 {
			x := make([]float32, of.dim)
			for j := range x {
				x[j] = float32(r.NormFloat64() / math.Sqrt(1+float64(j)/20))
			}
			return x
		}
		for i := range centres {
			centres[i] = draw()
		}
		offset := draw()
		zipf := rand.NewZipf(r, 1.1, 10, topics-1)
		vector := func() []float32 {
			x, centre := draw(), centres[zipf.Uint64()]
			sum := 0.0
			for j := range x {
				x[j] = .6*x[j] + centre[j] + .5*offset[j]
				sum += float64(x[j]) * float64(x[j])
			}
			for j := range x {
				x[j] /= float32(math.Sqrt(sum))
			}
			return x
		}
		for done := 0; done < of.n; {
			batch := d.NewBatch()
			for range min(20_000, of.n-done) {
				must(b, batch.Put(c, &db.Item{Key: fmt.Sprint(done), Vectors: map[string][]float32{"e": vector()}}))
				done++
			}
			must(b, batch.Commit(ctx))
		}
		var queries [][]float32
		for range 100 {
			queries = append(queries, vector())
		}
		need(c.Search(ctx, db.Query{From: "e", Vector: queries[0]}))(b)
		must(b, d.WaitForIndex(ctx))
		for _, run := range []struct {
			k      int
			metric db.Metric
		}{{10, db.Cosine}, {100, db.Cosine}, {10, db.Dot}, {10, db.L2}} {
			k := run.k
			mustAlter(b, c, db.Alteration{Metrics: map[string]db.Metric{"e": run.metric}})
			b.Run(fmt.Sprintf("%dx%d/%s/k%d", of.n, of.dim, run.metric, k), func(b *testing.B) {
				read := 0
				for i := 0; b.Loop(); i++ {
					q := db.Query{From: "e", Vector: queries[i%len(queries)], K: k}
					if i < 20 {
						x, _ := need2(c.Explain(ctx, q, -1))(b)
						read += x.Compared
						continue
					}
					need(c.Search(ctx, q))(b)
				}
				b.ReportMetric(float64(read)/20, "read/op")
			})
		}
		dbkit.MustClose(b, d)
	}
}
