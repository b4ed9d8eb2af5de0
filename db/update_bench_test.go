package db_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

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
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}}})
	if err != nil {
		b.Fatal(err)
	}
	putAll(b, c, items[:first])
	modalities := []string{"image", "text"}
	opt := fit.Options{
		Bits: 128, Anchors: 800, Fusion: fit.Fusion{Rule: fit.FusionSum}, Start: 1,
		Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{}, Gamma: map[string]float64{},
	}
	for _, m := range modalities {
		opt.Features[m], opt.Map[m], opt.Gamma[m] = model.FeaturesRaw, model.MapRBF, 1e-2
	}
	dbkit.MustTrain(b, c, db.TrainOptions{Options: opt})
	return d, c, items
}

// BenchmarkUpdate puts labelled items one by one and updates after every hundred of
// them: ns/op is for an item. p50 of searches meanwhile is compared with that before,
// while as many cores are busy.
func BenchmarkUpdate(b *testing.B) {
	const every = 100
	_, c, items := streamed(b, 2000, 8000, &db.Options{NoSync: true})
	var updating time.Duration
	n := 0
	for b.Loop() {
		it := *items[2000+n%6000]
		it.Key = fmt.Sprint("new", n)
		if _, err := c.Put(ctx, &it); err != nil {
			b.Fatal(err)
		}
		if n++; n%every == 0 {
			start := time.Now()
			dbkit.MustUpdate(b, c, db.UpdateOptions{})
			updating += time.Since(start)
		}
	}
	b.ReportMetric(float64(updating.Microseconds())/float64(max(1, n/every*every)), "update_us/item")
}

// medianSearch returns the median time of a search by vector, of those that begin when
// that counts.
func medianSearch(b *testing.B, c *db.Collection, items []*db.Item, while, counts func() bool) (p50, p99 time.Duration) {
	b.Helper()
	var all []time.Duration
	for i := 0; while() || len(all) < 100; i++ {
		if !counts() {
			runtime.Gosched()
			continue
		}
		q := db.Query{From: "image", Vector: items[i%len(items)].Vectors["image"], To: "text"}
		start := time.Now()
		if _, err := c.Search(ctx, q); err != nil {
			b.Fatal(err)
		}
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
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(quiet.Microseconds()), "quiet_p50_us")
		b.ReportMetric(float64(during.Microseconds()), "during_p50_us")
		b.ReportMetric(float64(quiet99.Microseconds()), "quiet_p99_us")
		b.ReportMetric(float64(during99.Microseconds()), "during_p99_us")
		b.ReportMetric(float64(during)/float64(quiet), "ratio")
		b.ReportMetric(float64(updates), "updates")
	}
}
