package db_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var (
	indexItems = flag.Int("index.items", 20000, "vectors of BenchmarkVectorIndex")
	indexDims  = flag.Int("index.dims", 384, "dimensions of BenchmarkVectorIndex")
	indexSet   = flag.String("index.set", "topics", "set of vectors of BenchmarkVectorIndex")
	indexDir   = flag.String("index.dir", "", "folder for the database of BenchmarkVectorIndex, which stays, and serves the next run")
	indexWhere = flag.Bool("index.where", false, "BenchmarkVectorIndex also searches with filters that admit 50, 10, 1 and .1 % of the items")
	indexCache = flag.Int64("index.cache", 1<<30, "Options.RerankCacheBytes of BenchmarkVectorIndex")
)

// importIndexed makes the collection of BenchmarkVectorIndex, and an index of its vectors.
func importIndexed(b *testing.B, database *db.DB, e *synth.EmbeddingSource) *db.Collection {
	n := *indexItems
	c := need(database.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "e", Dim: *indexDims}}}))(b)
	start := time.Now()
	const batch = 50000
	for from := 0; from < n; from += batch {
		bt := database.NewBatch()
		for i := from; i < min(from+batch, n); i++ {
			item := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": e.Vector(i)}}
			if *indexWhere {
				for _, every := range []int{2, 10, 100, 1000} {
					if i%every == 0 {
						item.Labels = append(item.Labels, fmt.Sprint("every", every))
					}
				}
			}
			must(b, bt.Put(c, item))
		}
		must(b, bt.Commit(ctx))
	}
	b.Logf("imported in %v", time.Since(start))
	start = time.Now()
	x := need(c.IndexVectors(ctx, db.IndexOptions{}))(b)
	b.Logf("indexed in %v: %d cells, the largest of %d, %d bytes, %v", time.Since(start), x.Cells, x.Largest, x.Bytes, x.Seconds)
	for _, p := range x.Measured {
		b.Logf("k %d reach %.2f recall %.4f +- %.4f worst %.4f probes %.1f entries %.0f", p.K, p.Reach, p.Recall, p.Error, p.Worst, p.Probes, p.Entries)
	}
	return c
}

// BenchmarkVectorIndex measures searches by an index of vectors of generated embeddings, and what
// they find of what an exact search finds.
func BenchmarkVectorIndex(b *testing.B) {
	cells.ExactCost = 125_000 // as in earnest
	defer func() { cells.ExactCost = 0 }()
	e := need(synth.NewEmbeddingSource(synth.EmbeddingSet(*indexSet), *indexDims, 1))(b)
	dir := *indexDir
	if dir == "" {
		dir = b.TempDir() + "/db"
	}
	database := need(db.Open(dir, &db.Options{RerankCacheBytes: *indexCache}))(b)
	defer database.Close()
	c, err := database.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		c = importIndexed(b, database, e)
	} else if err != nil {
		b.Fatal(err)
	}
	qs := make([][]float32, 200)
	for i := range qs {
		qs[i] = e.Vector(1<<40 + i)
	}
	// Until vectors are in memory.
	need(c.Search(ctx, db.Query{From: "e", Vector: qs[0], K: 10, Recall: 1}))(b)
	must(b, database.WaitForIndex(ctx))
	measure := func(b *testing.B, name, where string, k int, recalls ...float64) {
		var truth [][]string
		for _, q := range qs {
			r := need(c.Search(ctx, db.Query{From: "e", Vector: q, K: k, Recall: 1, Where: where}))(b)
			truth = append(truth, keysOf(r.Hits))
		}
		for _, recall := range recalls {
			b.Run(fmt.Sprintf("%s/recall=%v", name, recall), func(b *testing.B) {
				var took []time.Duration
				hits, of, i, approximate := 0, 0, 0, 0
				for b.Loop() {
					at := time.Now()
					r := need(c.Search(ctx, db.Query{From: "e", Vector: qs[i%len(qs)], K: k, Recall: recall, Where: where}))(b)
					took = append(took, time.Since(at))
					for _, h := range r.Hits {
						if slices.Contains(truth[i%len(qs)], h.Key) {
							hits++
						}
					}
					of += len(truth[i%len(qs)])
					if r.Approximate {
						approximate++
					}
					i++
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
				b.ReportMetric(float64(hits)/float64(of), "recall")
				b.ReportMetric(float64(approximate)/float64(i), "approximate")
				x, _ := need2(c.Explain(ctx, db.Query{From: "e", Vector: qs[0], K: k, Recall: recall, Where: where}, -1))(b)
				b.ReportMetric(x.Predicted["cells"], "predicted-us")
			})
		}
	}
	for _, k := range []int{10, 1, 100} {
		measure(b, fmt.Sprintf("k=%d", k), "", k, .9, .95, .98, .99, .999, 1)
	}
	if *indexWhere {
		for _, every := range []int{2, 10, 100, 1000} {
			measure(b, fmt.Sprintf("every=%d", every), fmt.Sprintf("label = 'every%d'", every), 10, .95, .99, 1)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("heap %d MB", m.HeapAlloc>>20)
}

// BenchmarkPutBesideSearches measures synced writes of single items while a goroutine searches without
// a pause: of items that are found by a code, and of items whose vectors have an index.
func BenchmarkPutBesideSearches(b *testing.B) {
	cells.ExactCost = 125_000
	defer func() { cells.ExactCost = 0 }()
	n, d := *indexItems, *indexDims
	e := need(synth.NewEmbeddingSource(synth.EmbeddingSet(*indexSet), d, 1))(b)
	codes := need(synth.Codes(synth.Uniform, 128, n+1<<16, 1))(b)
	for _, kind := range []string{"codes", "vectors"} {
		schema := db.Schema{Bits: 128}
		item := func(i int) *db.Item {
			return &db.Item{Key: fmt.Sprint(i), Code: codes.At(i%(n+1<<16)).AppendBytes(nil, 128)}
		}
		query := func(i int) db.Query { return db.Query{Code: item(i).Code, K: 10} }
		if kind == "vectors" {
			schema = db.Schema{Modalities: []db.Modality{{Name: "e", Dim: d}}}
			item = func(i int) *db.Item {
				return &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"e": e.Vector(i)}}
			}
			query = func(i int) db.Query { return db.Query{From: "e", Vector: e.Vector(1<<40 + i), K: 10, Recall: .95} }
		}
		database := need(db.Open(b.TempDir(), nil))(b)
		defer database.Close()
		c := need(database.CreateCollection(ctx, "main", schema))(b)
		const batch = 50000
		for from := 0; from < n; from += batch {
			bt := database.NewBatch()
			for i := from; i < min(from+batch, n); i++ {
				must(b, bt.Put(c, item(i)))
			}
			must(b, bt.Commit(ctx))
		}
		if kind == "vectors" {
			need(c.IndexVectors(ctx, db.IndexOptions{}))(b)
		}
		qs := make([]db.Query, 200)
		for i := range qs {
			qs[i] = query(i)
		}
		next := n
		b.Run(kind, func(b *testing.B) {
			stop, searched := make(chan struct{}), make(chan int)
			go func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						searched <- i
						return
					default:
					}
					if _, err := c.Search(ctx, qs[i%len(qs)]); err != nil {
						b.Error(err)
					}
				}
			}()
			var took []time.Duration
			start := time.Now()
			for b.Loop() {
				it := item(next)
				next++
				at := time.Now()
				need(c.Put(ctx, it))(b)
				took = append(took, time.Since(at))
			}
			close(stop)
			b.ReportMetric(float64(<-searched)/time.Since(start).Seconds(), "searches/s")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
		})
	}
}
