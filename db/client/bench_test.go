package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/client"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/model/fit"
)

const (
	benchItems = 100_000
	benchDim   = 128
)

// learned is a database of 100,000 items of two modalities that have codes, and queries of it.
var learned = sync.OnceValues(func() (*db.DB, [][]float32) {
	dir, err := tempDir()
	if err != nil {
		panic(err)
	}
	d, err := db.Open(dir, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image",
		Dim: benchDim},
		{Name: "text", Dim: 16}}})
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b := d.NewBatch()
	var queries [][]float32
	for i := range benchItems {
		class := i % 50
		image, text := vector(rng, benchDim, class), vector(rng, 16, class%16)
		if len(queries) < 1000 {
			queries = append(queries, vector(rng, benchDim, class))
		}
		it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": image, "text": text}}
		if i%2 == 0 {
			it.Labels = []string{fmt.Sprint(class)}
		}
		err = b.Put(c, it)
		if err == nil && b.Full() {
			err = b.Commit(ctx)
			b = d.NewBatch()
		}
		if err != nil {
			panic(err)
		}
	}
	if err := b.Commit(ctx); err != nil {
		panic(err)
	}
	if _, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 200, Seed: 1},
		Rows: 4000}); err != nil {
		panic(err)
	}
	return d, queries
})

func vector(rng *rand.Rand, dim, class int) []float32 {
	x := make([]float32, dim)
	for j := range x {
		x[j] = float32(rng.NormFloat64())
	}
	x[class%dim] += 6
	return x
}

// served returns the URL of a server on a loopback port.
func served(b testing.TB, d api.Database) string {
	s, err := serve.New(map[string]api.Database{"photos": d}, serve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve.Serve(ctx, s, serve.Local(s), l, nil) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return "http://" + l.Addr().String() + "/photos"
}

func open(b testing.TB, url string) api.Collection {
	d, err := client.Open(url, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := d.Collection(context.Background(), "main")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return c
}

func at(times []time.Duration, share float64) float64 {
	slices.Sort(times)
	return float64(times[min(len(times)-1, int(share*float64(len(times))))].Microseconds())
}

// One connection, in turns with the same searches in process.
func BenchmarkOneConnection(b *testing.B) {
	d, queries := learned()
	ctx := context.Background()
	in, err := api.Folder(d, nil).Collection(ctx, "main")
	if err != nil {
		b.Fatal(err)
	}
	out := open(b, served(b, api.Folder(d, nil)))
	var inside, outside []time.Duration
	b.ResetTimer()
	for i := range b.N {
		q := db.Query{From: "image", To: "text", Vector: queries[i%len(queries)], K: 10}
		for _, x := range []struct {
			c     api.Collection
			times *[]time.Duration
		}{{in, &inside}, {out, &outside}} {
			begin := time.Now()
			if _, err := x.c.Search(ctx, q); err != nil {
				b.Fatal(err)
			}
			*x.times = append(*x.times, time.Since(begin))
		}
	}
	b.ReportMetric(at(inside, .5), "inside-p50-us")
	b.ReportMetric(at(outside, .5), "p50-us")
	b.ReportMetric(at(outside, .99), "p99-us")
}

// Eight connections that search, beside 200 synced writes a second.
func BenchmarkEightConnections(b *testing.B) {
	d, queries := learned()
	url := served(b, api.Folder(d, nil))
	ctx, cancel := context.WithCancel(context.Background())
	writer := open(b, url)
	var writing sync.WaitGroup
	writes := 0
	writing.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		rng := rand.New(rand.NewPCG(2, 2))
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			_, err := writer.Put(ctx, &db.Item{Key: fmt.Sprint("new", writes),
				Vectors: map[string][]float32{"image": vector(rng, benchDim, writes%50)}})
			if err != nil && ctx.Err() == nil {
				b.Error(err)
				return
			}
			writes++
		}
	})
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	begin := time.Now()
	for g := range 8 {
		c := open(b, url)
		wg.Go(func() {
			var times []time.Duration
			for i := g; i < b.N; i += 8 {
				begin := time.Now()
				if _, err := c.Search(ctx, db.Query{From: "image", To: "text",
					Vector: queries[i%len(queries)], K: 10}); err != nil {
					b.Error(err)
					return
				}
				times = append(times, time.Since(begin))
			}
			mu.Lock()
			all = append(all, times...)
			mu.Unlock()
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	cancel()
	writing.Wait()
	b.ReportMetric(float64(b.N)/took, "searches/s")
	b.ReportMetric(float64(writes)/took, "writes/s")
	b.ReportMetric(at(all, .5), "p50-us")
	b.ReportMetric(at(all, .99), "p99-us")
}

// Vectors of 128 dimensions come in, as .npy and as lines of JSON.
func BenchmarkImport(b *testing.B) {
	const rows = 100_000
	rng := rand.New(rand.NewPCG(3, 3))
	var array, lines bytes.Buffer
	w, err := npy.NewWriter[float32](&array, rows, benchDim)
	if err != nil {
		b.Fatal(err)
	}
	for i := range rows {
		x := vector(rng, benchDim, i%50)
		if err := w.Write(x); err != nil {
			b.Fatal(err)
		}
		line, err := json.Marshal(&db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x}})
		if err != nil {
			b.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for _, x := range []struct {
		name, query, kind string
		body              []byte
	}{{"npy", "?vectors=image&number_from=0", "application/x-npy", array.Bytes()},
		{"ndjson", "", "application/x-ndjson", lines.Bytes()}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := b.TempDir()
				d, err := db.Open(dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				url := served(b, api.Folder(d, nil))
				if _, err := d.CreateCollection(context.Background(), "main",
					db.Schema{Modalities: []db.Modality{{Name: "image", Dim: benchDim}}}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				target := url[:len(url)-len("/photos")] + "/v1/photos/collections/main:import" + x.query
				r, err := http.Post(target, x.kind, bytes.NewReader(x.body))
				if err != nil {
					b.Fatal(err)
				}
				text, _ := io.ReadAll(r.Body)
				if r.StatusCode != 200 {
					b.Fatalf("%s: %s", r.Status, text)
				}
				b.StopTimer()
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
