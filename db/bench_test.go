package db_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// BenchmarkOpen measures, of a database of a million uniform codes of 128 bits: how long opening takes, then
// the first search within a radius, which reads the store, and until the codes are in memory and indexed;
// where the search comes at once, and where loading has begun. Ask for 20 rounds or more.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	codes := need(synth.Codes(synth.Uniform, 128, n, 1))(b)
	members, _ := need2(synth.CodeQueries(synth.Uniform, 128, n, 1000, 1))(b)
	dir := b.TempDir()
	d, c := openNew(b, dir, nil, db.Schema{Bits: 128})
	batch := d.NewBatch()
	for i := range n {
		must(b, batch.Put(c, &db.Item{Code: codes.At(i).AppendBytes(nil, 128)}))
	}
	must(b, batch.Commit(ctx))
	dbkit.MustClose(b, d)
	for _, loading := range []bool{false, true} {
		b.Run(map[bool]string{false: "at-once", true: "while-loading"}[loading], func(b *testing.B) {
			times := map[string][]time.Duration{}
			took := func(what string, since time.Time) {
				times[what] = append(times[what], time.Since(since))
			}
			for i := range b.N {
				start := time.Now()
				d := dbkit.MustOpen(b, dir, nil)
				took("open", start)
				c := dbkit.MustCollection(b, d, "main")
				if loading {
					go db.Inside(c).Loaded(ctx) // which makes loading begin at once
				}
				asked := time.Now()
				runs := need(c.SearchRadius(ctx, db.Query{Code: members.At(i%1000).AppendBytes(nil, 128),
					Plan: db.PlanDisk}, 8))(b)
				need(runs.First(ctx, 10))(b)
				runs.Close()
				took("first-query", asked)
				must(b, d.WaitForIndex(ctx))
				took("ready", start)
				start = time.Now()
				dbkit.MustClose(b, d)
				took("close", start)
			}
			for what, t := range times {
				slices.Sort(t)
				b.ReportMetric(t[len(t)/2].Seconds()*1000, "p50-ms/"+what)
				b.ReportMetric(t[len(t)*9/10].Seconds()*1000, "p90-ms/"+what)
			}
		})
	}
}

// BenchmarkPut measures synced Puts of one item each, by some goroutines at a time: they share commits.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			d, c := openNew(b, b.TempDir(), nil, db.Schema{Bits: 128})
			defer dbkit.MustClose(b, d)
			codes := need(synth.Codes(synth.Uniform, 128, 100_000, 1))(b)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range writers {
				group.Go(func() {
					for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
						if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i),
							Code: codes.At(i%100_000).AppendBytes(nil, 128)}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
		})
	}
}

// orderItems bounds the sets of BenchmarkOrder.
var orderItems = flag.Int("order.items", 200_000,
	"items of the largest set of BenchmarkOrder: 200000 or 1000000")

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
		d, c := openNew(b, dir, nil, dbkit.PairsSchema)
		data := synth.NewStream(synth.Config{Classes: set.classes, LabelsPerItem: set.each,
			Dims: []int{8, 5}})
		var queries [][]float32
		for done := 0; done < set.items; {
			batch := d.NewBatch()
			for range min(50_000, set.items-done) {
				x, labels := data.Next()
				it := &db.Item{Key: fmt.Sprint(done), Vectors: map[string][]float32{"image": x[0],
					"text": x[1]}}
				for _, l := range labels {
					it.Labels = append(it.Labels, fmt.Sprint(l))
				}
				if len(queries) < 100 {
					queries = append(queries, x[1])
				}
				must(b, batch.Put(c, it))
				done++
			}
			must(b, batch.Commit(ctx))
		}
		opt := fit.Options{Bits: 64, Anchors: max(20, set.classes)}
		need(c.Train(ctx, db.TrainOptions{Options: opt, Rows: 10_000}))(b)
		for _, of := range []struct {
			name   string
			budget int64
		}{{"store", -1}, {"memory", 0}} {
			dbkit.MustClose(b, d)
			d = dbkit.MustOpen(b, dir, &db.Options{RerankCacheBytes: of.budget})
			c = dbkit.MustCollection(b, d, "main")
			must(b, d.WaitForIndex(ctx))
			for _, order := range []db.Rerank{db.RerankNone, db.RerankProjection, db.RerankAsymmetric} {
				if of.budget < 0 && order == db.RerankNone {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/%v", set.name, of.name, order), func(b *testing.B) {
					q := db.Query{From: "text", To: "image", K: 10, Rerank: order}
					for i := 0; b.Loop(); i++ {
						q.Vector = queries[i%len(queries)]
						need(c.Search(ctx, q))(b)
					}
				})
				b.Run(fmt.Sprintf("%s/%s/%v-page2", set.name, of.name, order), func(b *testing.B) {
					q := db.Query{From: "text", To: "image", K: 10, Rerank: order}
					var after []string
					for _, q.Vector = range queries {
						first := need(c.Search(ctx, q))(b)
						after = append(after, first.Next)
					}
					for i := 0; b.Loop(); i++ {
						q.Vector, q.After = queries[i%len(queries)], after[i%len(queries)]
						need(c.Search(ctx, q))(b)
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
				need(c.SearchAll(ctx, asked))(b)
			}
		})
		b.Run(set.name+"/encode", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				need2(c.EncodeQuery(ctx, db.Query{From: "text", Vector: queries[i%len(queries)]}))(b)
			}
		})
		dbkit.MustClose(b, d)
	}
}

// BenchmarkVectorsInCodes takes the first ten of 40,000 items of 384 dimensions by vectors within codes, as
// auto does, and in other orders; with vectors in memory at 8 bits, or, by the name store, without.
func BenchmarkVectorsInCodes(b *testing.B) {
	const n, dims = 40_000, 384
	dir := b.TempDir()
	d := dbkit.MustOpen(b, dir, nil)
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: dims}}}))(b)
	data := synth.NewStream(synth.Config{Classes: 20, Noise: 1, Dims: []int{dims}})
	var queries [][]float32
	for done := 0; done < n; {
		batch := d.NewBatch()
		for range 20_000 {
			x, labels := data.Next()
			if len(queries) < 100 {
				queries = append(queries, x[0])
			}
			it := &db.Item{Key: fmt.Sprint(done), Vectors: map[string][]float32{"image": x[0]},
				Labels: []string{fmt.Sprint(labels[0])}}
			must(b, batch.Put(c, it))
			done++
		}
		must(b, batch.Commit(ctx))
	}
	need(c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 20}, Rows: 4000}))(b)
	search := func(b *testing.B, order db.Rerank) {
		for i := 0; b.Loop(); i++ {
			need(c.Search(ctx, db.Query{From: "image", Vector: queries[i%len(queries)], K: 10,
				Rerank: order}))(b)
		}
	}
	for _, of := range []struct {
		name   string
		budget int64
	}{{"store", -1}, {"memory", 0}} {
		dbkit.MustClose(b, d)
		d = dbkit.MustOpen(b, dir, &db.Options{RerankCacheBytes: of.budget})
		c = dbkit.MustCollection(b, d, "main")
		need(c.Search(ctx, db.Query{From: "image", Vector: queries[0]}))(b)
		must(b, d.WaitForIndex(ctx))
		for _, order := range []db.Rerank{db.RerankAuto, db.RerankProjection, db.RerankNone} {
			b.Run(of.name+"/"+order.String(), func(b *testing.B) { search(b, order) })
		}
	}
	b.Run("encode", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			need2(c.EncodeQuery(ctx, db.Query{From: "image", Vector: queries[i%len(queries)]}))(b)
		}
	})
	dbkit.MustClose(b, d)
}

// BenchmarkUntrained takes the first ten of collections that are not trained: vectors of topics with
// Zipf's weights, a decaying spectrum, a common offset, and length 1.
func BenchmarkUntrained(b *testing.B) {
	for _, of := range []struct{ n, dim int }{{20_000, 512}, {100_000, 384}} {
		d := dbkit.MustOpen(b, b.TempDir(), nil)
		c := need(d.CreateCollection(ctx, "main",
			db.Schema{Modalities: []db.Modality{{Name: "e", Dim: of.dim}}}))(b)
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
				must(b, batch.Put(c, &db.Item{Key: fmt.Sprint(done),
					Vectors: map[string][]float32{"e": vector()}}))
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
			must(b, c.Alter(ctx, db.Alteration{Metrics: map[string]db.Metric{"e": run.metric}}))
			b.Run(fmt.Sprintf("%dx%d/%s/k%d", of.n, of.dim, run.metric, k), func(b *testing.B) {
				read := 0
				for i := 0; b.Loop(); i++ {
					q := db.Query{From: "e", Vector: queries[i%len(queries)], K: k}
					if i < 20 {
						x, _ := need2(dbkit.Explain(ctx, c, q, -1))(b)
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

// benchFiltered makes a collection of n items with labels and fields, which are indexed or not.
func benchFiltered(b *testing.B, n int, indexed bool) *db.Collection {
	d := dbkit.MustOpen(b, b.TempDir(), &db.Options{NoSync: true})
	b.Cleanup(func() { dbkit.MustClose(b, d) })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64, Fields: []db.Field{
		{Name: "year", Type: db.Int, Indexed: indexed}, {Name: "price", Type: db.Float, Indexed: indexed},
		{Name: "maker", Type: db.String, Indexed: indexed}, {Name: "sku", Type: db.String, Indexed: indexed},
		{Name: "new", Type: db.Bool, Indexed: indexed},
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
			"year": 1990 + r.IntN(40), "price": 1000 * r.Float64(),
			"maker": fmt.Sprint("maker ", r.IntN(100)),
			"sku":   fmt.Sprintf("%08x", r.Uint32()), "new": r.IntN(2) == 0,
		},
	}
}

func BenchmarkWhere(b *testing.B) {
	c := benchFiltered(b, 1_000_000, true)
	for _, where := range []string{
		"label = 'label 3'", "label IN ('label 3', 'label 4') AND NOT label = 'label 5'",
		"year = 2020", "year >= 2000 AND year < 2010", "year IN (1995, 2005, 2015)", "price < 100",
		"price >= 123.45 AND price <= 678.9",
		"new = true", "maker = 'maker 42'", "maker >= 'maker 4' AND maker < 'maker 5'", "sku = '0badf00d'",
		"sku < '01'",
		"label = 'label 3' AND year >= 2010 AND price < 100",
	} {
		b.Run(where, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = need(c.Count(ctx, where))(b)
			}
			b.ReportMetric(float64(n), "rows")
		})
	}
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			need(c.Search(ctx, db.Query{Code: make([]byte, 8), Where: "label = 'label 3' AND year >= 2010"}))(
				b)
		}
	})
}

var (
	indexItems = flag.Int("index.items", 20000, "vectors of BenchmarkVectorIndex")
	indexDims  = flag.Int("index.dims", 384, "dimensions of BenchmarkVectorIndex")
	indexSet   = flag.String("index.set", "topics", "set of vectors of BenchmarkVectorIndex")
	indexDir   = flag.String("index.dir", "",
		"folder for the database of BenchmarkVectorIndex, which stays, and serves the next run")
	indexWhere = flag.Bool("index.where", false,
		"BenchmarkVectorIndex also searches with filters that admit 50, 10, 1 and .1 % of the items")
	indexCache = flag.Int64("index.cache", 1<<30, "Options.RerankCacheBytes of BenchmarkVectorIndex")
)

// importIndexed makes the collection of BenchmarkVectorIndex, and an index of its vectors.
func importIndexed(b *testing.B, database *db.DB, e *synth.EmbeddingSource) *db.Collection {
	n := *indexItems
	c := need(database.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "e", Dim: *indexDims}}}))(b)
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
	b.Logf("indexed in %v: %d cells, the largest of %d, %d bytes, %v", time.Since(start), x.Cells, x.Largest,
		x.Bytes, x.Seconds)
	for _, p := range x.Measured {
		b.Logf("k %d reach %.2f recall %.4f +- %.4f worst %.4f probes %.1f entries %.0f", p.K, p.Reach,
			p.Recall, p.Error, p.Worst, p.Probes, p.Entries)
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
					r := need(c.Search(ctx, db.Query{From: "e", Vector: qs[i%len(qs)], K: k, Recall: recall,
						Where: where}))(b)
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
				x, _ := need2(dbkit.Explain(ctx, c, db.Query{From: "e", Vector: qs[0], K: k, Recall: recall,
					Where: where}, -1))(b)
				b.ReportMetric(x.Predicted["cells"], "predicted-us")
			})
		}
	}
	for _, k := range []int{10, 1, 100} {
		measure(b, fmt.Sprintf("k=%d", k), "", k, .9, .95, .98, .99, .999, 1)
	}
	if *indexWhere {
		for _, every := range []int{2, 10, 100, 1000} {
			measure(b, fmt.Sprintf("every=%d", every), fmt.Sprintf("label = 'every%d'", every), 10, .95, .99,
				1)
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
			query = func(i int) db.Query {
				return db.Query{From: "e", Vector: e.Vector(1<<40 + i), K: 10, Recall: .95}
			}
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
					fine(b, errOf(c.Search(ctx, qs[i%len(qs)])))
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

// BenchmarkWhereScanned is of fields without an index.
func BenchmarkWhereScanned(b *testing.B) {
	c := benchFiltered(b, 1_000_000, false)
	for _, where := range []string{
		"year = 2020", "price < 100", "new = true", "maker = 'maker 42'", "sku < '01'", "has(sku)",
		"year >= 2010 AND price < 100 AND sku LIKE 'a%'",
		"label = 'label 3' AND year >= 2010", "label = 'label 3' AND label = 'label 4' AND year >= 2010",
	} {
		b.Run(where, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = need(c.Count(ctx, where))(b)
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
				_, err := c.Count(ctx, where)
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
				_, err := c.Search(ctx, db.Query{Code: make([]byte, 8), K: 24, Facets: []string{by}})
				return err
			})
		}
	}
}
