package measure

import "testing"

// The recall of an answer is the share of the exact hits that it has. A hit as similar as the last exact
// one counts, too, as the exact answer could have had it instead.
func TestRecallFound(t *testing.T) {
	exact := answer{similarities: []float32{.9, .8, .8, .5}}
	for _, c := range []struct {
		similarities []float32
		want         float64
	}{
		{nil, 0},
		{[]float32{.9, .8, .8, .5}, 1},
		{[]float32{.9, .8, .5, .4}, .75},
		{[]float32{.8, .4, .3, .2}, .25},
		{[]float32{.9}, .25},
	} {
		if got := (&answer{similarities: c.similarities}).found(&exact); got != c.want {
			t.Errorf("%v: %v, want %v", c.similarities, got, c.want)
		}
	}
	if got := (&answer{}).found(&answer{}); got != 1 {
		t.Errorf("of nothing: %v", got)
	}
}
