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

func TestManyLabels(t *testing.T) {
	for _, cfg := range []ManyLabels{
		{Items: 500, Labels: 100},
		{Items: 500, Labels: 100, Zipf: true},
		{Items: 500, Labels: 100, PerItem: 4},
		{Items: 20, Labels: 5, Dims: []int{3}},
	} {
		d := cfg.Make()
		if !reflect.DeepEqual(d, cfg.Make()) {
			t.Errorf("%+v: other data the second time", cfg)
		}
		items := make([]int, cfg.Labels)
		for _, labels := range d.Labels {
			if len(labels) < 1 || len(labels) > max(1, cfg.PerItem) {
				t.Errorf("%+v: %d labels", cfg, len(labels))
			}
			for i, l := range labels {
				items[l]++
				if i > 0 && labels[i-1] >= l {
					t.Errorf("%+v: labels %v", cfg, labels)
				}
			}
		}
		for l, n := range items {
			if n == 0 {
				t.Errorf("%+v: nothing has label %d", cfg, l)
			}
		}
		if cfg.Zipf && items[0] < 3*items[9] {
			t.Errorf("%+v: %d items of the first label, %d of the tenth", cfg, items[0], items[9])
		}
		if d.Items() != cfg.Items || len(d.Vectors[0]) != cfg.Items {
			t.Errorf("%+v: %d items", cfg, d.Items())
		}
	}
}
