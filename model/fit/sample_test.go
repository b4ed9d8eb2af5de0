package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/random"
	"pgregory.net/rapid"
)

// sampleOf returns the numbers of the vectors that are kept out of n.
func sampleOf(seed uint64, n, k int) (rows []int) {
	s := newSample(random.Reservoir(rand.New(rand.NewPCG(seed, 0)), k))
	x := []float32{0} // one for all: a sample copies
	for i := range n {
		x[0] = float32(i)
		s.add([]model.Vector{model.Dense(x)})
	}
	for _, x := range s.ordered() {
		rows = append(rows, int(x.Value[0]))
	}
	return rows
}

func TestSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		k := rapid.IntRange(1, 300).Draw(t, "k")
		rows := sampleOf(rapid.Uint64().Draw(t, "seed"), n, k)
		stopIf(t, len(rows) != min(n, k) || !slices.IsSorted(rows) ||
			len(slices.Compact(slices.Clone(rows))) != len(rows), "%d of %d: %v", k, n, rows)
	})
}

// TestSampleIsUniform: every vector is kept equally often, at any position.
func TestSampleIsUniform(t *testing.T) {
	const n, k, rounds = 50, 7, 20_000
	count := make([]float64, n)
	for seed := range uint64(rounds) {
		for _, i := range sampleOf(seed, n, k) {
			count[i]++
		}
	}
	p := float64(k) / n
	for i, c := range count {
		deviation := (c - rounds*p) / math.Sqrt(rounds*p*(1-p))
		failIf(t, math.Abs(deviation) > 4.5, "vector %d is kept %g times, %.1f standard deviations from %g",
			i, c, deviation, rounds*p)
	}
}
