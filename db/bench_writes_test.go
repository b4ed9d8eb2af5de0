package db_test

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// BenchmarkBulkLoad stores items with codes and automatic keys in one batch of a new collection.
func BenchmarkBulkLoad(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("items=%d", n), func(b *testing.B) {
			codes := dbkit.RandomCodes(n, 128, 1)
			d := dbkit.MustOpen(b, b.TempDir(), nil)
			defer d.Close()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c := need(d.CreateCollection(ctx, fmt.Sprintf("c%d", i), db.Schema{Bits: 128}))(b)
				i++
				batch := d.NewBatch()
				for _, code := range codes {
					must(b, batch.Put(c, &db.Item{Code: code}))
				}
				must(b, batch.Commit(ctx))
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "items/s")
		})
	}
}

// BenchmarkCheckpoint makes checkpoints of 200,000 items of two modalities of 128 dimensions, of which 5,000
// have labels, with codes of 128 bits, and reports what they take of the disk, as a share of the whole.
func BenchmarkCheckpoint(b *testing.B) {
	d, c := openStreams(b, 200_000)
	need(c.Train(ctx, streamOptions))(b)
	must(b, d.Compact(ctx))
	whole := int64(0)
	for _, kind := range []struct {
		name string
		opt  db.CheckpointOptions
	}{{"full", db.CheckpointOptions{}}, {"collection", db.CheckpointOptions{Collection: "main"}},
		{"index-only", db.CheckpointOptions{IndexOnly: true}}} {
		b.Run(kind.name, func(b *testing.B) {
			above := b.TempDir()
			var bytes int64
			for i := range b.N {
				dir := filepath.Join(above, fmt.Sprint(i))
				must(b, d.Checkpoint(ctx, dir, kind.opt))
				bytes = bytesIn(b, dir)
			}
			if whole == 0 {
				whole = bytes
			}
			b.ReportMetric(float64(bytes)/1e6, "MB")
			b.ReportMetric(100*float64(bytes)/float64(whole), "%-of-full")
			b.ReportMetric(200_000/(b.Elapsed().Seconds()/float64(b.N)), "items/s")
		})
	}
}

// bytesIn is how long the files of a folder are.
func bytesIn(b *testing.B, dir string) (bytes int64) {
	must(b, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	}))
	return bytes
}

// streamed opens a collection of two modalities of 128 dimensions with a model of 800
// anchors and 128 bits, trained on the first items, and returns all items.
func streamed(b *testing.B, first, n int, opts *db.Options) (*db.DB, *db.Collection, []*db.Item) {
	b.Helper()
	data := synth.Pairs(synth.Config{Items: n, Classes: 20, Dims: []int{128, 128}})
	items := make([]*db.Item, n)
	for i := range items {
		x := data.Item(i)
		items[i] = &db.Item{
			Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(data.Labels[i])},
			Vectors: map[string][]float32{"image": x[0], "text": x[1]},
		}
	}
	d := dbkit.MustOpen(b, b.TempDir(), opts)
	b.Cleanup(func() { d.Close() })
	c := need(d.CreateCollection(ctx, "main",
		db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}}))(b)
	putAll(b, c, items[:first])
	modalities := []string{"image", "text"}
	opt := fit.Options{
		Bits: 128, Anchors: 800, Fusion: fit.Fusion{Rule: fit.FusionSum}, Start: 1,
		Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{},
		Gamma: map[string]float64{},
	}
	for _, m := range modalities {
		opt.Features[m], opt.Map[m], opt.Gamma[m] = model.FeaturesRaw, model.MapRBF, 1e-2
	}
	dbkit.MustTrain(b, c, db.TrainOptions{Options: opt})
	return d, c, items
}

// BenchmarkUpdate puts labelled items one by one and updates after every hundred of them: ns/op is for an
// item. p50 of searches meanwhile is compared with that before, while as many cores are busy.
func BenchmarkUpdate(b *testing.B) {
	const every = 100
	_, c, items := streamed(b, 2000, 8000, &db.Options{NoSync: true})
	var updating time.Duration
	n := 0
	for b.Loop() {
		it := *items[2000+n%6000]
		it.Key = fmt.Sprint("new", n)
		need(c.Put(ctx, &it))(b)
		if n++; n%every == 0 {
			start := time.Now()
			dbkit.MustUpdate(b, c, db.UpdateOptions{})
			updating += time.Since(start)
		}
	}
	b.ReportMetric(float64(updating.Microseconds())/float64(max(1, n/every*every)), "update_us/item")
}

// medianSearch returns the median time of a search by vector, of those that begin when that counts.
func medianSearch(b *testing.B, c *db.Collection, items []*db.Item, while,
	counts func() bool) (p50, p99 time.Duration) {
	b.Helper()
	var all []time.Duration
	for i := 0; while() || len(all) < 100; i++ {
		if !counts() {
			runtime.Gosched()
			continue
		}
		q := db.Query{From: "image", Vector: items[i%len(items)].Vectors["image"], To: "text"}
		start := time.Now()
		need(c.Search(ctx, q))(b)
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100]
}

// BenchmarkSearchDuringUpdates compares the median time of searches when nothing else
// runs with that while updates do, each of a hundred items put before.
func BenchmarkSearchDuringUpdates(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("needs two processors")
	}
	_, c, items := streamed(b, 2000, 8000, &db.Options{NoSync: true})
	for b.Loop() {
		end := time.Now().Add(2 * time.Second)
		before := func() bool { return time.Now().Before(end) }
		quiet, quiet99 := medianSearch(b, c, items, before, func() bool { return true })
		var stop, updating atomic.Bool
		done, updates := make(chan error, 1), 0
		go func() {
			for i := 0; !stop.Load(); {
				for range 100 {
					it := *items[2000+i%6000]
					it.Key = fmt.Sprint("new", i)
					i++
					if _, err := c.Put(ctx, &it); err != nil {
						done <- err
						return
					}
				}
				updating.Store(true)
				_, err := c.Update(ctx, db.UpdateOptions{})
				updating.Store(false)
				if err != nil {
					done <- err
					return
				}
				updates++
			}
			done <- nil
		}()
		end = time.Now().Add(4 * time.Second)
		during, during99 := medianSearch(b, c, items, before, updating.Load)
		stop.Store(true)
		must(b, <-done)
		b.ReportMetric(float64(quiet.Microseconds()), "quiet_p50_us")
		b.ReportMetric(float64(during.Microseconds()), "during_p50_us")
		b.ReportMetric(float64(quiet99.Microseconds()), "quiet_p99_us")
		b.ReportMetric(float64(during99.Microseconds()), "during_p99_us")
		b.ReportMetric(float64(during)/float64(quiet), "ratio")
		b.ReportMetric(float64(updates), "updates")
	}
}

var streamSchema = db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}}

// openStreams opens a database of n items in two modalities of 128 dimensions, of
// which the first 5,000 have labels.
func openStreams(b *testing.B, n int) (*db.DB, *db.Collection) {
	const block = 50_000
	d := dbkit.MustOpen(b, b.TempDir(), nil)
	b.Cleanup(func() { _ = d.Close() })
	c := need(d.CreateCollection(ctx, "main", streamSchema))(b)
	for first := 0; first < n; first += block {
		data := synth.Pairs(synth.Config{Items: min(block, n-first), Dims: []int{128, 128}, Classes: 20,
			Noise: 1, Seed: uint64(first)})
		batch := d.NewBatch()
		for i := range data.Items() {
			x := data.Item(i)
			it := &db.Item{Vectors: map[string][]float32{"image": x[0], "text": x[1]}}
			if first+i < 5000 {
				it.Labels = []string{string(rune('a' + data.Labels[i][0]))}
			}
			must(b, batch.Put(c, it))
		}
		must(b, batch.Commit(ctx))
	}
	return d, c
}

var streamOptions = db.TrainOptions{Options: fit.Options{
	Bits: 128, Anchors: 800, Seed: 1,
	Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
	Gamma:    map[string]float64{"image": .1, "text": .1},
	Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
}, Rows: 5000}

// BenchmarkReindex reindexes a collection of 200,000 items, on half of the processors: alone, and while one
// goroutine puts items and one searches, whose medians it reports beside those of quiet times.
func BenchmarkReindex(b *testing.B) {
	const n = 200_000
	d, c := openStreams(b, n)
	need(c.Train(ctx, streamOptions))(b)
	must(b, d.WaitForIndex(ctx))
	queries := synth.Pairs(synth.Config{Items: 500, Dims: []int{128, 128}, Classes: 20, Noise: 1,
		Seed: 1 << 40})
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
	built := need(c.Reindex(ctx, db.ReindexOptions{Progress: func(string, int64, int64) {
		if begun.IsZero() {
			begun = time.Now()
		}
	}}))(b)
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
	must(b, c.DropSpace(ctx, built.Space))
	b.StartTimer()
}

// putAndSearch does both until the context ends, and returns what each took.
func putAndSearch(b *testing.B, ctx context.Context, c *db.Collection,
	queries *synth.Data) (put, searched []time.Duration) {
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
			return errOf(c.Put(context.Background(), &db.Item{Key: fmt.Sprint("new", i),
				Vectors: map[string][]float32{"image": x[0], "text": x[1]}}))
		})
	})
	group.Go(func() {
		loop(&searched, func(i int) error {
			_, err := c.Search(context.Background(), db.Query{From: "image", To: "text",
				Vector: queries.Item(i)[0]})
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

func BenchmarkWikiTrain(b *testing.B) {
	c := openShared(b, "wiki")
	for b.Loop() {
		dbkit.MustTrain(b, c, authorsSettings(64, 1))
	}
}

// BenchmarkWikiSearch takes the first ten hits, and what encoding the query takes of that.
func BenchmarkWikiSearch(b *testing.B) {
	c := openShared(b, "wiki")
	dbkit.MustTrain(b, c, authorsSettings(64, 1))
	vectors, _ := sharedSet(b, "wiki", "query")
	for _, pair := range [][2]string{{"image", "text"}, {"text", "image"}} {
		b.Run(pair[0]+"->"+pair[1], func(b *testing.B) {
			queries := vectors[pair[0]]
			for i := 0; b.Loop(); i++ {
				need(c.Search(ctx, db.Query{From: pair[0], To: pair[1], Vector: queries[i%len(queries)]}))(b)
			}
		})
		b.Run(pair[0]+"-encode", func(b *testing.B) {
			queries := vectors[pair[0]]
			for i := 0; b.Loop(); i++ {
				need2(c.EncodeQuery(ctx, db.Query{From: pair[0], Vector: queries[i%len(queries)]}))(b)
			}
		})
	}
}
