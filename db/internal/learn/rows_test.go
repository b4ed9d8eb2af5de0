package learn

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

func TestEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfDistinct(rapid.Uint32Range(0, 200_000), rapid.ID).Draw(t, "rows")
		if len(all) > 0 && rapid.Bool().Draw(t, "a run") {
			for i := range uint32(9000) {
				all = append(all, 300_000+i)
			}
		}
		n := rapid.IntRange(1, 300).Draw(t, "n")
		rows := roaring.BitmapOf(all...)
		sorted := rows.ToArray()
		want := sorted
		if len(sorted) > n {
			want = nil
			for i := range n {
				want = append(want, sorted[i*len(sorted)/n])
			}
		}
		if got := evenly(rows, n).ToArray(); !slices.Equal(got, want) {
			t.Fatalf("%d of %d rows: %v, want %v", n, len(sorted), got, want)
		}
	})
}
