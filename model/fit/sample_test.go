package fit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/random"
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

// TestSamplesAreCoordinated: samples with equal seeds agree on the items, whichever
// modalities these have.
func TestSamplesAreCoordinated(t *testing.T) {
	const n, k = 5000, 100
	has := func(item, t int) bool { return t == 0 || item%7 < 5 && t == 1 || item%50 == 3 && t == 2 }
	var samples []*bottomSample
	for t := range 3 {
		s := &bottomSample{k: k, seed: 9}
		places := map[int]int{}
		for i := range n {
			if has(i, t) {
				if p := s.add(i); p >= 0 {
					places[p] = i
				}
			}
		}
		samples = append(samples, s)
		for p, item := range s.items() {
			if places[p] != item {
				panic("another item is at the place")
			}
		}
	}
	var keys []keyed
	for i := range n {
		keys = append(keys, keyed{key: samples[0].key(i), item: i})
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	for m, s := range samples {
		var want []int
		for _, e := range keys {
			if has(e.item, m) && len(want) < k {
				want = append(want, e.item)
			}
		}
		got := s.items()
		slices.Sort(got)
		slices.Sort(want)
		failIf(t, !slices.Equal(got, want), "sample %d is not of the least keys", m)
	}
	all := ofAll(samples, k)
	failIf(t, len(all) < k/2, "%d items in common", len(all))
	for i, item := range all {
		stopIf(t, item != keys[i].item, "item %d is %d, want %d", i, item, keys[i].item)
		for m, s := range samples {
			failIf(t, has(item, m) != slices.Contains(s.items(), item),
				"item %d has modality %d: %v, but the sample does not agree", item, m, has(item, m))
		}
	}
	first := ofAll(samples, 10)
	failIf(t, !slices.Equal(first, all[:10]), "the first ten are %v of %v", first, all)
	// Every item is equally likely, so each half of the items gets about half of the
	// sample.
	low := 0
	for _, e := range keys[:1000] {
		if e.item < n/2 {
			low++
		}
	}
	failIf(t, low < 430 || low > 570, "%d of 1000 are in the first half", low)
}
