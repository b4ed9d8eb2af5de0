package db

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/codesets"
)

// BenchmarkOpen measures, of a database of a million uniform codes of 128 bits: how
// long opening takes, then the first search within a radius, which reads the store,
// and until the codes are in memory and indexed.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	codes, err := codesets.Generate(codesets.Uniform, 128, n, 1)
	if err != nil {
		b.Fatal(err)
	}
	members, _, err := codesets.Queries(codesets.Uniform, 128, n, 1000, 1)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	d := mustOpen(b, dir, nil)
	c, err := d.CreateCollection(ctx, "main", Schema{Bits: 128})
	if err != nil {
		b.Fatal(err)
	}
	batch := d.NewBatch()
	for i := range n {
		if err := batch.Put(c, &Item{Code: codes.At(i).AppendBytes(nil, 128)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := batch.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	mustClose(b, d)
	var open, first, ready, closing time.Duration
	b.ResetTimer()
	for i := range b.N {
		start := time.Now()
		d := mustOpen(b, dir, nil)
		open += time.Since(start)
		c := mustCollection(b, d, "main")
		asked := time.Now()
		runs, err := c.SearchRadius(ctx, Query{Code: members.At(i%1000).AppendBytes(nil, 128), Plan: PlanDisk}, 8)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := runs.First(ctx, 10); err != nil {
			b.Fatal(err)
		}
		runs.Close()
		first += time.Since(asked)
		if err := d.WaitForIndex(ctx); err != nil {
			b.Fatal(err)
		}
		ready += time.Since(start)
		start = time.Now()
		mustClose(b, d)
		closing += time.Since(start)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(b.N) }
	b.ReportMetric(ms(open), "ms/open")
	b.ReportMetric(ms(first), "ms/first-query")
	b.ReportMetric(ms(ready), "ms/ready")
	b.ReportMetric(ms(closing), "ms/close")
}

// BenchmarkPut measures synced Puts of one item each, by some goroutines at a time:
// they share commits.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			d := mustOpen(b, b.TempDir(), nil)
			defer mustClose(b, d)
			c, err := d.CreateCollection(ctx, "main", Schema{Bits: 128})
			if err != nil {
				b.Fatal(err)
			}
			codes, err := codesets.Generate(codesets.Uniform, 128, 100_000, 1)
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range writers {
				group.Go(func() {
					for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
						if err := c.Put(ctx, &Item{Key: fmt.Sprint(i), Code: codes.At(i%100_000).AppendBytes(nil, 128)}); err != nil {
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
