package db_test

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// codesDatabase opens a database of n uniform codes of 128 bits, indexed, and returns some that
// it has.
func codesDatabase(b *testing.B, n int) (*db.DB, *db.Collection, [][]byte) {
	b.Helper()
	codes := need(synth.Codes(synth.Uniform, 128, n, 1))(b)
	d := dbkit.MustOpen(b, b.TempDir(), nil)
	b.Cleanup(func() { dbkit.MustClose(b, d) })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 128}))(b)
	batch := d.NewBatch()
	for i := range n {
		must(b, batch.Put(c, &db.Item{Code: codes.At(i).AppendBytes(nil, 128)}))
	}
	must(b, batch.Commit(ctx))
	must(b, d.WaitForIndex(ctx))
	var some [][]byte
	for i := range 1000 {
		some = append(some, codes.At(i*n/1000).AppendBytes(nil, 128))
	}
	return d, c, some
}

// BenchmarkStats measures what Stats costs, of a learned collection and of many codes while nothing is
// written, and of many labels after each write.
func BenchmarkStats(b *testing.B) {
	b.Run("learned", func(b *testing.B) {
		d, c := dbkit.OpenPairs(b)
		putAll(b, c, dbkit.Pairs(2000, synth.Config{Classes: 10}))
		dbkit.MustTrain(b, c, db.TrainOptions{})
		stats(b, d)
	})
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("codes=%d", n), func(b *testing.B) {
			d, _, _ := codesDatabase(b, n)
			stats(b, d)
		})
	}
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("written/labels=%d", n), func(b *testing.B) {
			d := dbkit.MustOpen(b, b.TempDir(), &db.Options{NoSync: true})
			b.Cleanup(func() { dbkit.MustClose(b, d) })
			c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(b)
			item := func(i int) *db.Item {
				return &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}, Labels: []string{fmt.Sprint("label", i%n)}}
			}
			batch := d.NewBatch()
			for i := range 100_000 {
				must(b, batch.Put(c, item(i)))
			}
			must(b, batch.Commit(ctx))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				need(c.Put(ctx, item(i%100_000)))(b)
				b.StartTimer()
				if s, err := d.Stats(); err != nil || s.Collections[0].Labels != n {
					b.Fatal(s, err)
				}
			}
		})
	}
}

func stats(b *testing.B, d *db.DB) {
	b.ReportAllocs()
	for b.Loop() {
		need(d.Stats())(b)
	}
}

// BenchmarkCountRadius measures the shortest of all searches, by one goroutine and by as
// many as there are processors.
func BenchmarkCountRadius(b *testing.B) {
	_, c, some := codesDatabase(b, 100_000)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			need(c.CountRadius(ctx, db.Query{Code: some[i%len(some)]}, 4))(b)
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			for i := 0; p.Next(); i++ {
				if _, err := c.CountRadius(ctx, db.Query{Code: some[i%len(some)]}, 4); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
