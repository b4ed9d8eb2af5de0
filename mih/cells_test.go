package mih

import (
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Segments of tests have cells from fewer codes on, so that all tests meet both kinds.
func init() { minCelled = 300 }

// A search by cells finds the share of the nearest codes that it is asked for, among codes
// that it has not measured.
func TestCellsHaveTheRecall(t *testing.T) {
	const n, queries = 20_000, 300
	for _, q := range []int{128, 1024} {
		for _, set := range synth.CodeSets() {
			codes, err := synth.Codes(set, q, n, 3)
			if err != nil {
				t.Fatal(err)
			}
			members, fresh, err := synth.CodeQueries(set, q, n, queries, 3)
			if err != nil {
				t.Fatal(err)
			}
			table := celledItems(t, codes)
			g := table.segments[0]
			if g.cells == nil { // few codes are distinct
				continue
			}
			for _, recall := range []float64{.8, .95, .99} {
				for _, k := range []int{5, 60} {
					s, got := table.newSearch(nil), 0
					probes := g.cells.enough(recall, k)
					for i := range queries {
						s.query = fresh.At(i)
						if i%2 == 0 {
							s.query = members.At(i)
						}
						all, err := table.Nearest(ctx, &Query{Code: s.query}, k, nil, nil)
						if err != nil {
							t.Fatal(err)
						}
						s.start(q, k, table, nil)
						if err := g.probe(ctx, s, probes); err != nil {
							t.Fatal(err)
						}
						last := 0
						weightWithin(table, all, &last, k, true)
						got += weightWithin(table, s.found, &last, k, false)
					}
					s.release()
					if share := float64(got) / float64(k*queries); share < recall-.02 {
						t.Errorf("%d bits of %v, k = %d: recall %.3f by %d of %d cells, %v is asked for", q, set, k,
							share, probes, g.cells.centres.Len(), recall)
					}
				}
			}
		}
	}
}

// What Nearest returns for a recall are codes at their distances, each once, and all that pass the
// filter if only exact answers are possible.
func TestNearestByRecall(t *testing.T) {
	const n, k = 30_000, 10
	codes, err := synth.Codes(synth.Projected, 1024, n, 4)
	if err != nil {
		t.Fatal(err)
	}
	_, fresh, err := synth.CodeQueries(synth.Projected, 1024, n, 50, 4)
	if err != nil {
		t.Fatal(err)
	}
	table := celledItems(t, codes)
	few, half := roaring.New(), roaring.New()
	for row := range uint32(n) {
		if row%2 == 0 {
			half.Add(row)
		}
		if row%1000 == 0 {
			few.Add(row)
		}
	}
	// Whatever this machine has measured, cells are faster.
	table.segments[0].cells.pace = 0
	byCells := 0
	for i := range fresh.Len() {
		for _, filter := range []*roaring.Bitmap{nil, half, few} {
			q := Query{Code: fresh.At(i), Recall: .9, Filter: filter}
			var e Explain
			found, err := table.Nearest(ctx, &q, k, nil, &e)
			if err != nil {
				t.Fatal(err)
			}
			seen, sum := map[uint32]bool{}, 0
			for j, x := range found {
				d := codec.Distance(q.Code, table.Code(x.Position()))
				if d != x.Distance() || seen[x.Position()] || j > 0 && d < found[j-1].Distance() ||
					q.weight(table, x.Position(), d) == 0 {
					t.Fatalf("%v is code %d of %v", x, j, found)
				}
				seen[x.Position()] = true
				sum += q.weight(table, x.Position(), x.Distance())
			}
			if sum < k {
				t.Errorf("%d of %d results", sum, k)
			}
			if e.Plan == PlanCells {
				byCells++
				if e.Recall != .9 || filter == few {
					t.Errorf("%+v", e)
				}
			}
		}
	}
	if byCells == 0 {
		t.Error("no search was by cells")
	}
	// With a weight, or a recall of 1, all are found.
	for _, q := range []Query{{Recall: 1}, {Recall: .5, Weight: func(n uint32, _ int) int { return 1 }}} {
		q.Code = fresh.At(0)
		var e Explain
		found, err := table.Nearest(ctx, &q, k, nil, &e)
		all, allErr := table.Nearest(ctx, &Query{Code: q.Code}, k, nil, nil)
		if err != nil || allErr != nil || fmt.Sprint(found) != fmt.Sprint(all) || e.Recall != 0 {
			t.Errorf("%v, want %v; %v, %v", found, all, err, allErr)
		}
	}
}
