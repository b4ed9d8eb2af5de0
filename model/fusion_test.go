package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// TestFuse checks the formula, for items that have all, some and one of the modalities,
// and for items whose modalities have no weight.
func TestFuse(t *testing.T) {
	const q = 16
	rng := rand.New(rand.NewPCG(1, 2))
	vector := func(f func() float64) []float64 {
		v := make([]float64, q)
		for j := range v {
			v[j] = f()
		}
		return v
	}
	mean := vector(func() float64 { return rng.Float64()*2 - 1 })
	sum := rank.Fusion{Weights: []float64{1, 1, 1}}
	weighted := rank.Fusion{Weights: []float64{.3, 0, 1}, Mean: mean}
	third := rank.Fusion{Weights: []float64{0, 0, 1}, Mean: mean}
	m := new(Model)
	z := [][]float64{vector(rng.NormFloat64), vector(rng.NormFloat64), vector(rng.NormFloat64)}
	for _, c := range []struct {
		how     rank.Fusion
		has     [3]bool
		weights [3]float64 // weights that count
		only    int
	}{
		{sum, [3]bool{true, true, true}, [3]float64{1, 1, 1}, -1},
		{sum, [3]bool{false, true, false}, [3]float64{0, 1, 0}, -1},
		{weighted, [3]bool{true, true, true}, [3]float64{.3, 0, 1}, -1},
		{weighted, [3]bool{true, true, false}, [3]float64{.3, 0, 0}, 0},
		{weighted, [3]bool{false, true, false}, [3]float64{0, 1, 0}, -1},
		{third, [3]bool{true, true, true}, [3]float64{0, 0, 1}, 2},
		{third, [3]bool{false, false, true}, [3]float64{0, 0, 1}, -1},
		{third, [3]bool{true, true, false}, [3]float64{1, 1, 0}, -1},
		{third, [3]bool{}, [3]float64{}, -1},
	} {
		parts := make([][]float64, 3)
		for t, has := range c.has {
			if has {
				parts[t] = z[t]
			}
		}
		dst := vector(func() float64 { return 99 })
		m.fusion = c.how
		if only := m.Fuse(dst, parts); only != c.only {
			t.Errorf("%+v: only %d", c, only)
		}
		for j, got := range dst {
			want := 0.0
			for t, w := range c.weights {
				want += w * z[t][j]
				if c.how.Mean != nil {
					want -= w * mean[j]
				}
			}
			stopIf(t, !approx(got, want, 1e-12), "%+v: bit %d is %g, want %g", c, j, got, want)
		}
	}
	// Far from everything there are no signs, even if the mean code is subtracted.
	dst := vector(func() float64 { return math.Pi })
	m.fusion = third
	m.Fuse(dst, [][]float64{nil, nil, make([]float64, q)})
	if slices.ContainsFunc(dst, func(v float64) bool { return v != 0 }) {
		t.Errorf("zero projections give %v", dst)
	}
	// If the modality with weight is far from everything, the others count.
	if only := m.Fuse(dst, [][]float64{z[0], z[1], make([]float64, q)}); only != -1 ||
		!approx(dst[3], z[0][3]+z[1][3]-2*mean[3], 1e-12) {
		t.Errorf("only %d, %v", only, dst)
	}
}
