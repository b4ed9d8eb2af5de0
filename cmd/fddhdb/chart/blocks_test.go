package chart

import (
	"math"
	"testing"
)

func TestChart(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high float64
		want      string
	}{
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, 7, "▁▂▃▄▅▆▇█"},
		{[]float64{-5, 50, math.Inf(1)}, 0, 10, "▁██"},
		{[]float64{0, 0}, 0, 0, "▁▁"},
		{nil, 0, 1, ""},
	} {
		if got := blockLine(c.values, c.low, c.high); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}
