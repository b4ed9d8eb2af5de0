package mih

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkRecall measures k-NN searches that may leave results out, and what they leave out. Half of
// the queries are perturbed members of the set, half are fresh:
//
//	go test ./mih -run '^$' -bench Recall -benchtime 2x
func BenchmarkRecall(b *testing.B) {
	const n, queries, k = 1_000_000, 400, 10
	for _, q := range []int{128, 256, 1024} {
		for _, set := range synth.CodeSets() {
			b.Run(fmt.Sprintf("bits=%d/%v", q, set), func(b *testing.B) {
				codes, err := synth.Codes(set, q, n, 1)
				if err != nil {
					b.Fatal(err)
				}
				members, fresh, err := synth.CodeQueries(set, q, n, queries, 1)
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				table := celledItems(b, codes)
				b.Logf("made in %v, %+v", time.Since(start), table.Memory())
				last := make([]int, queries) // distance of the k-th
				for _, recall := range []float64{0, .99, .95, .9, .8} {
					b.Run(fmt.Sprintf("recall=%v", recall), func(b *testing.B) {
						times, got := []float64{}, 0
						for b.Loop() {
							for i := range queries {
								code := fresh.At(i)
								if i%2 == 0 {
									code = members.At(i)
								}
								start := time.Now()
								q := Query{Code: code, Recall: recall}
								found, err := table.Nearest(ctx, &q, k, nil, nil)
								times = append(times, float64(time.Since(start))/1000)
								if err != nil {
									b.Fatal(err)
								}
								got += weightWithin(table, found, &last[i], k, recall == 0)
							}
						}
						slices.Sort(times)
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(times[len(times)/2], "us-p50")
						b.ReportMetric(times[len(times)*99/100], "us-p99")
						b.ReportMetric(float64(got)/float64(k*len(times)), "recall")
					})
				}
			})
		}
	}
}

// celledItems returns a table of all codes, by cells.
func celledItems(t testing.TB, codes codec.Codes) *Table {
	t.Helper()
	w := writerOf(t, codes)
	b := w.Publish().Rebuild()
	b.Cells = true
	if err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	w.Install(b)
	return w.Publish()
}

// weightWithin returns how many of the k nearest rows are found. exact sets the distance of the k-th.
func weightWithin(t *Table, found []codec.Near, last *int, k int, exact bool) (sum int) {
	for _, x := range found {
		if exact && sum < k {
			*last = x.Distance()
		}
		if x.Distance() <= *last {
			sum += t.Cardinality(x.Position())
		}
	}
	return min(sum, k)
}
