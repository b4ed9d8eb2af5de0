package search

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFirstRankedIsThePrefixOfTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]rankedRow, rapid.IntRange(0, 200).Draw(t, "n"))
		for i := range rows {
			rows[i] = rankedRow{float32(rapid.IntRange(-3, 3).Draw(t, "cosine")) / 3, uint32(i)}
		}
		k := rapid.IntRange(1, 100).Draw(t, "k")
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b rankedRow) int { return cmp.Compare(b.cosine, a.cosine) })
		if got := firstRanked(rows, k); !slices.Equal(got, want[:min(k, len(want))]) {
			t.Fatalf("first %d: %v, want %v", k, got, want)
		}
	})
}
