package db_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkOpen measures, of a database of a million uniform codes of 128 bits: how
// long opening takes, then the first search within a radius, which reads the store,
// and until the codes are in memory and indexed; where the search comes at once, and
// where loading has begun. Ask for 20 rounds or more.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	codes := need(synth.Codes(synth.Uniform, 128, n, 1))(b)
	members, _ := need2(synth.CodeQueries(synth.Uniform, 128, n, 1000, 1))(b)
	dir := b.TempDir()
	d := dbkit.MustOpen(b, dir, nil)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 128}))(b)
	batch := d.NewBatch()
	for i := range n {
		must(b, batch.Put(c, &db.Item{Code: codes.At(i).AppendBytes(nil, 128)}))
	}
	must(b, batch.Commit(ctx))
	dbkit.MustClose(b, d)
	for _, loading := range []bool{false, true} {
		b.Run(map[bool]string{false: "at-once", true: "while-loading"}[loading], func(b *testing.B) {
			times := map[string][]time.Duration{}
			took := func(what string, since time.Time) { times[what] = append(times[what], time.Since(since)) }
			for i := range b.N {
				start := time.Now()
				d := dbkit.MustOpen(b, dir, nil)
				took("open", start)
				c := dbkit.MustCollection(b, d, "main")
				if loading {
					go db.Inside(c).Loaded(ctx) // which makes loading begin at once
				}
				asked := time.Now()
				runs := need(c.SearchRadius(ctx, db.Query{Code: members.At(i%1000).AppendBytes(nil, 128), Plan: db.PlanDisk}, 8))(b)
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

// BenchmarkPut measures synced Puts of one item each, by some goroutines at a time:
// they share commits.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			d := dbkit.MustOpen(b, b.TempDir(), nil)
			defer dbkit.MustClose(b, d)
			c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 128}))(b)
			codes := need(synth.Codes(synth.Uniform, 128, 100_000, 1))(b)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range writers {
				group.Go(func() {
					for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
						if _, err := c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: codes.At(i%100_000).AppendBytes(nil, 128)}); err != nil {
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
