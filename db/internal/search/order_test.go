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
			rows[i] = rankedRow{rapid.SampledFrom(similarities).Draw(t, "similarity"), uint32(i)}
		}
		k := rapid.SampledFrom([]int{1, 2, 10, 40, 100, math.MaxInt}).Draw(t, "k")
		before := []rankedRow{{row: 7}}
		top := topRows{k: k}
		for _, i := range rapid.Permutation(all(len(rows))).Draw(t, "order") {
			top.add(rows[i])
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want,
			func(a, b rankedRow) int { return cmp.Compare(b.similarity, a.similarity) })
		want = append(before, want[:min(k, len(want))]...)
		if got := top.appendTo(slices.Clone(before)); !slices.Equal(got, want) {
			t.Fatalf("first %d: %v, want %v", k, got, want)
		}
	})
}

// similarities are those that rows may have; first and lacking among them.
var similarities = []float32{first, 1, .5, .25, 1e-30, 0, -1e-30, -.25, -1, lacking}

func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
