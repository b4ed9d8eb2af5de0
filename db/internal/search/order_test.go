package search

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However many rows it is shown, and in whatever order, topRows has the first of them.
func TestTopRowsAreThePrefixOfTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]rankedRow, rapid.IntRange(0, 500).Draw(t, "n"))
		for i := range rows {
			rows[i] = rankedRow{float32(rapid.IntRange(-3, 3).Draw(t, "similarity")) / 3, uint32(i)}
		}
		k := rapid.SampledFrom([]int{1, 2, 10, 40, 100, math.MaxInt}).Draw(t, "k")
		before := []rankedRow{{row: 7}}
		top := topRows{rows: slices.Clone(before), from: 1, k: k}
		for _, x := range rows {
			top.add(x)
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b rankedRow) int { return cmp.Compare(b.similarity, a.similarity) })
		want = append(before, want[:min(k, len(want))]...)
		if got := top.sorted(); !slices.Equal(got, want) {
			t.Fatalf("first %d: %v, want %v", k, got, want)
		}
	})
}
