package synth

import (
	"reflect"
	"testing"
)

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
