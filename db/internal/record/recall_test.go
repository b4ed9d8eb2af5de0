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
	for _, c := range []struct{ k, recall, reach, expected float64 }{
		{1, .8, .4, .8},
		{1, .95, .8, .97},
		{1, .965, .8, .97}, // not reached, less the error
		{.5, .8, .4, .8},   // below all
		{10, .9, .4, .9},
		{3, .85, .8, .97}, // as 1 needs
		{10, .95, .8, .99},
		{30, .9, .4, .9}, // 10 and 100 need as much
		{30, .95, .8, .99},
		{30, .985, .8, .98}, // 100 does not find it
		{100, .95, .4, .96},
		{5000, .97, .8, .98}, // beyond all
	} {
		if reach, expected := x.Reach(c.k, c.recall); reach != c.reach || expected != c.expected {
			t.Errorf("k %v, recall %v: reach %v, %v expected; want %v, %v", c.k, c.recall, reach, expected, c.reach, c.expected)
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
			t.Errorf("k %v, reach %v: %v cells with %v entries, want %v", c.k, c.reach, probes, entries, c.probes)
		}
	}
	for i := range x.Curve {
		x.Curve[i].Entries = 0 // as an earlier version has measured it
	}
	if probes, entries := x.Looks(1000, .4); math.Abs(probes-128) > 1e-6 || entries != 0 {
		t.Errorf("without entries: %v, %v", probes, entries)
	}
	x.Curve = x.Curve[:2]
	if probes, _ := x.Looks(50, .4); probes != 2 {
		t.Errorf("of one k alone: %v", probes)
	}
}
