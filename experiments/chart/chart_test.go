package chart

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{-.5, .5, "-0.50 -0.25 0.00 0.25 0.50"},
		{.803, .886, "0.80 0.82 0.84 0.86 0.88 0.90"},
		{0, 12, "0 2 4 6 8 10 12"},
		{0, 4, "0 1 2 3 4"},
		{45, 730, "0 250 500 750"},
		{.7, .7, "0.2 0.4 0.6 0.8 1.0 1.2"},
	} {
		var got []string
		for _, tick := range RoundTicks(c.low, c.high) {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, s, c.want)
		}
	}
}

// Any range has 4 to 7 ticks that cover it, with equal distances and labels that say where they are.
func TestRoundTicksCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		low := 1e4 * random.NormFloat64()
		high := low + math.Pow(10, 8*random.Float64()-3)
		ticks := RoundTicks(low, high)
		if n := len(ticks); n < 4 || n > 7 {
			t.Fatalf("from %v to %v: %d ticks", low, high, n)
		}
		step := ticks[1].Value - ticks[0].Value
		first, last := ticks[0].Value, ticks[len(ticks)-1].Value
		if first > low+1e-6*step || last < high-1e-6*step || low-first > 1.001*step ||
			last-high > 1.001*step {
			t.Errorf("from %v to %v: from %v to %v", low, high, first, last)
		}
		for i, tick := range ticks {
			if at := ticks[0].Value + float64(i)*step; math.Abs(tick.Value-at) > 1e-6*step {
				t.Errorf("tick %d is at %v, not %v", i, tick.Value, at)
			}
			x, err := strconv.ParseFloat(tick.Label, 64)
			if err != nil || math.Abs(x-tick.Value) > 1e-6*step {
				t.Errorf("tick at %v has label %q", tick.Value, tick.Label)
			}
		}
	}
}
