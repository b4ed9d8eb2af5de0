package synth

import (
	"reflect"
	"slices"
	"testing"
)

func TestPairs(t *testing.T) {
	cfg := Config{Items: 200, Classes: 5, Dims: []int{6, 3, 4}, LabelsPerItem: 3, Missing: 0.4, Seed: 7}
	d := Pairs(cfg)
	if !reflect.DeepEqual(d, Pairs(cfg)) {
		t.Fatal("one configuration made different data")
	}
	cfg.Seed++
	if reflect.DeepEqual(d, Pairs(cfg)) {
		t.Fatal("another seed made the same data")
	}
	if d.Items() != 200 {
		t.Fatalf("%d items", d.Items())
	}
	seen := map[uint32]bool{}
	missing := 0
	for i, labels := range d.Labels {
		if len(labels) == 0 || len(labels) > 3 || !slices.IsSorted(labels) ||
			len(slices.Compact(slices.Clone(labels))) != len(labels) {
			t.Fatalf("item %d has labels %v", i, labels)
		}
		for _, l := range labels {
			seen[l] = true
		}
		has := 0
		for m, row := range d.Item(i) {
			switch {
			case row == nil:
				missing++
			case len(row) == cfg.Dims[m]:
				has++
			default:
				t.Fatalf("item %d: modality %d has %d numbers", i, m, len(row))
			}
		}
		if has == 0 {
			t.Fatalf("item %d has no vector", i)
		}
	}
	if len(seen) != 5 || missing == 0 {
		t.Fatalf("%d labels seen, %d vectors missing", len(seen), missing)
	}
	if part := d.Slice(50, 60); part.Items() != 10 || !reflect.DeepEqual(part.Item(3), d.Item(53)) {
		t.Fatal("a slice shows other items")
	}
}
