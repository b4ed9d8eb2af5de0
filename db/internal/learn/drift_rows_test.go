package learn

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/report"
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

// Stats compare the latest items that were measured with the first that came, if any did
// before, and else with those of the training.
func TestComparedDrift(t *testing.T) {
	revision := func(n uint32, d *report.Drift) *spaces.RevisionDescriptor {
		return &spaces.RevisionDescriptor{RevisionInfo: report.RevisionInfo{Revision: n, Drift: d}}
	}
	trained, came := &report.Drift{Trained: true}, &report.Drift{Items: 1}
	for _, c := range []struct {
		revisions []*spaces.RevisionDescriptor
		want      []uint32
	}{
		{nil, nil},
		{[]*spaces.RevisionDescriptor{revision(1, nil), revision(2, nil)}, nil},
		{[]*spaces.RevisionDescriptor{revision(1, trained)}, []uint32{1}},
		{[]*spaces.RevisionDescriptor{revision(1, nil), revision(2, came)}, []uint32{2}},
		{[]*spaces.RevisionDescriptor{revision(1, trained), revision(2, nil), revision(3, came)}, []uint32{1, 3}},
		{[]*spaces.RevisionDescriptor{revision(1, trained), revision(2, came), revision(3, came), revision(4, came), revision(5, nil)}, []uint32{2, 4}},
		{[]*spaces.RevisionDescriptor{revision(4, came), revision(5, came), revision(6, came)}, []uint32{4, 6}},
	} {
		var got []uint32
		for _, d := range ComparedDrift(c.revisions) {
			got = append(got, d.Revision)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d revisions: %d, want %d", len(c.revisions), got, c.want)
		}
	}
}
