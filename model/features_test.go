package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// positives returns vectors without negative numbers, with a column of zeros, a
// constant column and a zero vector.
func positives(n int) [][]float32 {
	rng := rand.New(rand.NewPCG(3, 4))
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = []float32{rng.Float32(), 100 * rng.Float32() * rng.Float32(), 0, 7, 1e-6 * rng.Float32()}
	}
	rows[n/2] = make([]float32, 5)
	rows[n/2][3] = 7
	return rows
}

func TestFeaturesAgainstDefinition(t *testing.T) {
	rows := positives(40)
	column := func(j int) (mean, deviation float64) {
		for _, x := range rows {
			mean += float64(x[j]) / float64(len(rows))
		}
		for _, x := range rows {
			deviation += (float64(x[j]) - mean) * (float64(x[j]) - mean) / float64(len(rows))
		}
		if deviation < 1e-20 { // rounding of the mean
			return mean, 1
		}
		return mean, math.Sqrt(deviation)
	}
	norm := func(x []float64) []float64 {
		var sum float64
		for _, v := range x {
			sum += v * v
		}
		for i := range x {
			if sum > 0 {
				x[i] /= math.Sqrt(sum)
			}
		}
		return x
	}
	each := func(x []float32, f func(j int, v float64) float64) []float64 {
		y := make([]float64, len(x))
		for j, v := range x {
			y[j] = f(j, float64(v))
		}
		return y
	}
	same := func(_ int, v float64) float64 { return v }
	root := func(_ int, v float64) float64 { return math.Sqrt(v) }
	for kind, definition := range map[FeatureKind]func(x []float32) []float64{
		FeaturesRaw: func(x []float32) []float64 { return each(x, same) },
		FeaturesZScore: func(x []float32) []float64 {
			return each(x, func(j int, v float64) float64 {
				mean, deviation := column(j)
				return (v - mean) / deviation
			})
		},
		FeaturesHellinger: func(x []float32) []float64 { return each(x, root) },
		FeaturesLog: func(x []float32) []float64 {
			return each(x, func(j int, v float64) float64 {
				_, deviation := column(j)
				return math.Log(v + deviation/1000)
			})
		},
		FeaturesL2:          func(x []float32) []float64 { return norm(each(x, same)) },
		FeaturesHellingerL2: func(x []float32) []float64 { return norm(each(x, root)) },
	} {
		f := NewFeatures(kind, momentsOf(rows))
		for _, x := range append(rows, make([]float32, 5)) {
			got := make([]float32, len(x))
			f.Apply(got, Dense(x))
			for j, want := range definition(x) {
				stopIf(t, !approx(float64(got[j]), want, 1e-6*max(1, math.Abs(want))),
					"%v of %v: %v, want %g at %d", kind, x, got, want, j)
			}
			in := slices.Clone(x)
			f.Apply(in, Dense(in))
			stopIf(t, !slices.Equal(in, got), "%v in place: %v, want %v", kind, in, got)
		}
		for _, x := range [][]float32{
			{math.MaxFloat32, -math.MaxFloat32, 1e30, -1e30, -math.MaxFloat32},
			{math.SmallestNonzeroFloat32, 0, 0, 0, 0}, {-1, -1, -1, -1, -1},
		} {
			got := make([]float32, len(x))
			f.Apply(got, Dense(x))
			for _, v := range got {
				failIf(t, v-v != 0, "%v of %v: %v", kind, x, got)
			}
		}
	}
}

// TestRBFLinear: both maps side by side, the linear one in units of sqrt(sigma/2).
func TestRBFLinear(t *testing.T) {
	rows := positives(50)
	mo := momentsOf(rows)
	sigma, _ := mo.Sigma()
	rbf, both := NewMap(MapRBF, nil, 1, mo, denseAll(rows[:20])),
		NewMap(MapRBFLinear, nil, 1, mo, denseAll(rows[:20]))
	want, got := make([]float32, 50*20), make([]float32, 50*26)
	rbf.apply(want, denseAll(rows), new(MapScratch))
	both.apply(got, denseAll(rows), new(MapScratch))
	for i, x := range rows {
		row := got[26*i : 26*i+26]
		stopIf(t, !slices.Equal(row[:20], want[20*i:20*i+20]) || row[25] != 1,
			"row %d: %v, want %v and the intercept", i, row, want[20*i:20*i+20])
		for j, v := range x {
			if w := (float64(v) - mo.Mean[j]) / math.Sqrt(sigma/2); !approx(float64(row[20+j]), w, 1e-5) {
				t.Fatalf("row %d, column %d: %g, want %g", i, j, row[20+j], w)
			}
		}
	}
	far := make([]float32, 26)
	both.apply(far, []Vector{{Value: []float32{math.MaxFloat32, -math.MaxFloat32, 1, 1, 1}}}, new(MapScratch))
	for _, v := range far {
		stopIf(t, v-v != 0, "%v", far)
	}
}

// Moments in parts are those of the whole, whatever the parts.
func TestMomentsMerge(t *testing.T) {
	sparse, _, _ := texts(t, 1, 0, 999)
	dense := synth.Embeddings(0, 999, 5, 2)
	for mod, xs := range [][]Vector{denseAll(dense), sparse} {
		ms := []Modality{{Dim: 5}, {Dim: synth.NUSWideText, Sparse: true}}
		whole := NewMoments(ms[mod])
		whole.Add(xs, 1)
		parts := NewMoments(ms[mod])
		for part := range slices.Chunk(xs, 100) {
			p := NewMoments(ms[mod])
			p.Add(part, 1)
			parts.Merge(p)
			parts.Merge(NewMoments(ms[mod]))
		}
		whole.Settle()
		parts.Settle()
		for j := range whole.Mean {
			if d := whole.Mean[j] - parts.Mean[j]; d*d > 1e-18*(1+whole.Mean[j]*whole.Mean[j]) {
				t.Fatalf("mean %g, not %g", parts.Mean[j], whole.Mean[j])
			}
			if d := whole.m2[j] - parts.m2[j]; d*d > 1e-18*(1+whole.m2[j]*whole.m2[j]) {
				t.Fatalf("squares %g, not %g", parts.m2[j], whole.m2[j])
			}
			stopIf(t, whole.low[j] != parts.low[j], "least %g, not %g", parts.low[j], whole.low[j])
		}
	}
}
