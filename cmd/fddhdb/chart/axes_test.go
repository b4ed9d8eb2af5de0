package chart

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/plot"
)

// Axes of times have a few round numbers, each at its logarithm, whatever the range.
func TestDecadeTicks(t *testing.T) {
	labels := func(ticks plot.ConstantTicks) (all []string) {
		for _, x := range ticks {
			all = append(all, x.Label)
		}
		return all
	}
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{-.1, 1.05, "[1 2 5 10]"},
		{-1.2, .3, "[0.1 0.2 0.5 1]"},
		{2.2, 5.4, "[300 1k 3k 10k 30k 100k]"},
		{-3, 9, "[0.01 1 100 10k 1M 100M]"},
		{3.5, 4.5, "[5k 10k 20k]"},
	} {
		ticks := decadeTicks(c.low, c.high)
		if got := fmt.Sprint(labels(ticks)); got != c.want {
			t.Errorf("from 10^%g to 10^%g: %s, want %s", c.low, c.high, got, c.want)
		}
		for _, x := range ticks {
			if x.Value < c.low || x.Value > c.high {
				t.Errorf("%s stands outside", x.Label)
			}
		}
	}
	if at := decadeTicks(0, 1)[1]; at.Label != "2" || at.Value != math.Log10(2) {
		t.Errorf("%+v", at)
	}
	for low := -4.; low < 4; low += .37 {
		for span := 1.; span < 30; span *= 1.3 {
			if n := len(decadeTicks(low, low+span)); n < 1 || n > 10 {
				t.Errorf("%d ticks from 10^%g to 10^%g", n, low, low+span)
			}
		}
	}
}

func TestCountTicks(t *testing.T) {
	for _, c := range []struct {
		low, high int
		want      string
	}{{0, 3, "[0 1 2 3]"}, {1, 10, "[2 4 6 8 10]"}, {0, 16, "[0 2 4 6 8 10 12 14 16]"}, {3, 128, "[20 40 60 80 100 120]"}, {5, 5, "[5]"}} {
		var got []string
		for _, x := range CountTicks(c.low, c.high) {
			got = append(got, x.Label)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("from %d to %d: %v, want %s", c.low, c.high, got, c.want)
		}
	}
}
