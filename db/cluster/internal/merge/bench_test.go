package merge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
)

// BenchmarkPage merges answers of 10 hits each into a page of 10.
func BenchmarkPage(b *testing.B) {
	for _, shards := range []int{4, 64} {
		b.Run(fmt.Sprint("shards=", shards), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			answers := benchAnswers(r, shards)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := merge.Page(answers, merge.Cursor{}, merge.Want{K: 10}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseCursor reads a cursor over 64 shards, ten of them begun.
func BenchmarkParseCursor(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	_, at, err := merge.Page(benchAnswers(r, 64), merge.Cursor{}, merge.Want{K: 10})
	if err != nil {
		b.Fatal(err)
	}
	text := at.String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := merge.ParseCursor(text, 64); err != nil {
			b.Fatal(err)
		}
	}
}

// benchAnswers makes answers of 10 hits that are merged to the last detail.
func benchAnswers(r *rand.Rand, shards int) []*db.Result {
	answers := make([]*db.Result, shards)
	for i := range answers {
		a := &db.Result{Space: 1, Rerank: db.RerankProjection, Hits: make([]db.Hit, 10)}
		for j := range a.Hits {
			// A cursor of 63 characters, as package db makes them.
			cursor := fmt.Sprintf("AgECAwQFBgcIAAAAAAEAAAABAAAA%035d", r.IntN(1e9))
			a.Hits[j] = db.Hit{Key: fmt.Sprint("k", r.IntN(1e9)), Distance: j / 4, Score: float64(10 - j/2),
				Similarity: 1 - float32(j)/10 + r.Float32()/10, Cursor: cursor}
		}
		a.Next = a.Hits[9].Cursor
		answers[i] = a
	}
	return answers
}
