package db_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

var streamSchema = db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}}

// openStreams opens a database of n items in two modalities of 128 dimensions, of
// which the first 5,000 have labels.
func openStreams(b *testing.B, n int) (*db.DB, *db.Collection) {
	const block = 50_000
	d := dbkit.MustOpen(b, b.TempDir(), nil)
	b.Cleanup(func() { _ = d.Close() })
	c, err := d.CreateCollection(ctx, "main", streamSchema)
	if err != nil {
		b.Fatal(err)
	}
	for first := 0; first < n; first += block {
		data := synth.Pairs(synth.Config{Items: min(block, n-first), Dims: []int{128, 128}, Classes: 20, Noise: 1, Seed: uint64(first)})
		batch := d.NewBatch()
		for i := range data.Items() {
			x := data.Item(i)
			it := &db.Item{Vectors: map[string][]float32{"image": x[0], "text": x[1]}}
			if first+i < 5000 {
				it.Labels = []string{string(rune('a' + data.Labels[i][0]))}
			}
			if err := batch.Put(c, it); err != nil {
				b.Fatal(err)
			}
		}
		if err := batch.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return d, c
}

var streamOptions = db.TrainOptions{Options: fit.Options{
	Bits: 128, Anchors: 800, Seed: 1,
	Map: map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF}, Gamma: map[string]float64{"image": .1, "text": .1},
	Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
}, Rows: 5000}

// BenchmarkFirstTraining trains a collection of 200,000 items on 5,000 of them, and
// reports what it takes to give all of them their codes.
func BenchmarkFirstTraining(b *testing.B) {
	const n = 200_000
	for range b.N {
		b.StopTimer()
		d, c := openStreams(b, n)
		b.StartTimer()
		tr, err := c.Train(ctx, streamOptions)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(tr.Seconds["encode"]+tr.Seconds["commit"], "s/codes")
		b.ReportMetric(tr.Seconds["commit"], "s/commit")
		b.ReportMetric(float64(n)/(tr.Seconds["encode"]+tr.Seconds["commit"]), "items/s")
		s, _ := c.Stats()
		b.ReportMetric(float64(s.DistinctCodes), "codes")
		b.StopTimer()
		dbkit.MustClose(b, d)
	}
}

// BenchmarkReindex reindexes a collection of 200,000 items, on half of the processors:
// alone, and while one goroutine puts items and one searches, whose medians it reports
// beside those of quiet times.
func BenchmarkReindex(b *testing.B) {
	const n = 200_000
	d, c := openStreams(b, n)
	if _, err := c.Train(ctx, streamOptions); err != nil {
		b.Fatal(err)
	}
	if err := d.WaitForIndex(ctx); err != nil {
		b.Fatal(err)
	}
	queries := synth.Pairs(synth.Config{Items: 500, Dims: []int{128, 128}, Classes: 20, Noise: 1, Seed: 1 << 40})
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("busy=%v", busy), func(b *testing.B) {
			for range b.N {
				reindexOnce(b, c, queries, busy)
			}
		})
	}
}

func reindexOnce(b *testing.B, c *db.Collection, queries *synth.Data, busy bool) {
	if busy {
		b.StopTimer()
		quiet, cancel := context.WithTimeout(ctx, 3*time.Second)
		put, searched := putAndSearch(b, quiet, c, queries)
		cancel()
		reportTimes(b, "put-quiet", put)
		reportTimes(b, "search-quiet", searched)
		b.StartTimer()
	}
	during, stop := context.WithCancel(ctx)
	defer stop()
	var put, searched []time.Duration
	var group sync.WaitGroup
	if busy {
		group.Go(func() { put, searched = putAndSearch(b, during, c, queries) })
	}
	start := time.Now()
	var begun time.Time
	built, err := c.Reindex(ctx, db.ReindexOptions{Progress: func(string, int64, int64) {
		if begun.IsZero() {
			begun = time.Now()
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(start)
	stop()
	group.Wait()
	b.ReportMetric(float64(built.Items)/took.Seconds(), "items/s")
	b.ReportMetric(begun.Sub(start).Seconds(), "s/first-block")
	if busy {
		reportTimes(b, "put", put)
		reportTimes(b, "search", searched)
	}
	b.StopTimer()
	if err := c.DropSpace(ctx, built.Space); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// BenchmarkReindexLimited reindexes for some seconds at several rates, while one
// goroutine puts items and one searches, and reports what they take.
func BenchmarkReindexLimited(b *testing.B) {
	d, c := openStreams(b, 60_000)
	if _, err := c.Train(ctx, streamOptions); err != nil {
		b.Fatal(err)
	}
	if err := d.WaitForIndex(ctx); err != nil {
		b.Fatal(err)
	}
	queries := synth.Pairs(synth.Config{Items: 500, Dims: []int{128, 128}, Classes: 20, Noise: 1, Seed: 1 << 40})
	for _, rate := range []int{100, 1000, 4000, 8000, 16_000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			for range b.N {
				during, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				var reached int64
				var group sync.WaitGroup
				group.Go(func() {
					_, err := c.Reindex(during, db.ReindexOptions{Rate: rate, Progress: func(_ string, done, _ int64) { reached = done }})
					if err != nil && during.Err() == nil {
						b.Error(err)
					}
				})
				put, searched := putAndSearch(b, during, c, queries)
				group.Wait()
				b.ReportMetric(float64(reached)/3, "items/s")
				reportTimes(b, "put", put)
				reportTimes(b, "search", searched)
				b.StopTimer()
				if err := c.DropSpace(ctx, db.Space(inSpace(b, c, 0).Spaces[1].Numbers.ID)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// putAndSearch does both until the context ends, and returns what each took.
func putAndSearch(b *testing.B, ctx context.Context, c *db.Collection, queries *synth.Data) (put, searched []time.Duration) {
	loop := func(times *[]time.Duration, f func(i int) error) {
		for i := 0; ctx.Err() == nil; i++ {
			start := time.Now()
			if err := f(i % queries.Items()); err != nil {
				b.Error(err)
				return
			}
			*times = append(*times, time.Since(start))
			time.Sleep(time.Millisecond)
		}
	}
	var group sync.WaitGroup
	group.Go(func() {
		loop(&put, func(i int) error {
			x := queries.Item(i)
			return dbkit.Second(c.Put(context.Background(), &db.Item{Key: fmt.Sprint("new", i), Vectors: map[string][]float32{"image": x[0], "text": x[1]}}))
		})
	})
	group.Go(func() {
		loop(&searched, func(i int) error {
			_, err := c.Search(context.Background(), db.Query{From: "image", To: "text", Vector: queries.Item(i)[0]})
			return err
		})
	})
	group.Wait()
	return put, searched
}

func reportTimes(b *testing.B, what string, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us/"+what)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us/"+what)
	b.ReportMetric(float64(times[len(times)-1].Microseconds()), "max-us/"+what)
}
