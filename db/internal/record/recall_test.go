package record

import (
	"math"
	"testing"
)

// What a search looks at follows from what was measured for the k around its own.
func TestWhatASearchLooksAt(t *testing.T) {
	x := &VectorIndex{Curve: []RecallAt{
		{K: 1, Reach: .4, Recall: .8, Probes: 2, Entries: 20},
		{K: 1, Reach: .8, Recall: .97, Error: .01, Probes: 4, Entries: 40},
		{K: 10, Reach: .4, Recall: .9, Probes: 8, Entries: 80},
		{K: 10, Reach: .8, Recall: .99, Probes: 16, Entries: 160},
		{K: 100, Reach: .4, Recall: .96, Probes: 32, Entries: 320},
		{K: 100, Reach: .8, Recall: .98, Probes: 64, Entries: 640},
	}}
	for i := range x.Curve {
		x.Curve[i].Worst = x.Curve[i].Recall
	}
	x.Curve[4].Worst = .95 // of some queries, though of all it is .96
	for _, c := range []struct{ k, recall, reach, expected float64 }{
		{1, .8, .4, .8},
		{1, .95, .8, .97},
		{1, .965, .8, .96}, // not reached, less the error
		{.5, .8, .4, .8},   // below all
		{10, .8, .4, .9},
		{10, .9, .8, .9}, // 1 needs more
		{3, .85, .8, .9}, // likewise
		{10, .95, .8, .99},
		{30, .8, .4, .96},    // as 100
		{30, .985, .8, .96},  // 1 does not find it
		{100, .955, .8, .98}, // at less, some queries find less
		{5000, .8, .4, .96},  // beyond all
	} {
		if reach, expected := x.Reach(c.k, c.recall); reach != c.reach || expected != c.expected {
			t.Errorf("k %v, recall %v: reach %v, %v expected; want %v, %v", c.k, c.recall, reach, expected,
				c.reach, c.expected)
		}
	}
	for _, c := range []struct{ k, reach, probes float64 }{
		{1, .4, 2}, {10, .4, 8}, {100, .4, 32}, {100, .8, 64},
		{math.Sqrt(10), .4, 4}, // between
		{1000, .4, 128},        // beyond: as from 10 to 100
		{.1, .4, .5},           // below: as from 1 to 10
		{10, .9, 16},           // a reach beyond all
	} {
		probes, entries := x.Looks(c.k, c.reach)
		if math.Abs(probes/c.probes-1) > 1e-9 || math.Abs(entries/c.probes/10-1) > 1e-9 {
			t.Errorf("k %v, reach %v: %v cells with %v entries, want %v", c.k, c.reach, probes, entries,
				c.probes)
		}
	}
	x.Curve = x.Curve[:2]
	if probes, _ := x.Looks(50, .4); probes != 2 {
		t.Errorf("of one k alone: %v", probes)
	}
}
