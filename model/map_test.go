package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

func momentsOf(rows [][]float32) *Moments {
	m := NewMoments(Modality{Dim: len(rows[0])})
	m.Add(denseAll(rows), 2)
	return m
}

// squaredDistance computes in float64 throughout.
func squaredDistance(a, b []float32) (d float64) {
	for i := range a {
		d += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
	}
	return d
}

func TestSigmaIsTheMeanSquaredPairDistance(t *testing.T) {
	for _, shift := range []float32{0, 1000} {
		rows := synth.Pairs(synth.Config{Items: 80, Seed: 2}).Vectors[0]
		for _, x := range rows {
			for j := range x {
				x[j] += shift
			}
		}
		var sum float64
		for _, a := range rows {
			for _, b := range rows {
				sum += squaredDistance(a, b)
			}
		}
		want := sum / float64(len(rows)*len(rows))
		if got, constant := momentsOf(rows).Sigma(); !approx(got/want, 1, 1e-12) || constant {
			t.Errorf("shifted by %g: sigma %.15g, want %.15g", shift, got, want)
		}
	}
	for _, v := range []float32{0, 0.1, 1e30} {
		rows := slices.Repeat([][]float32{{v, v, -v}}, 7)
		if sigma, constant := momentsOf(rows).Sigma(); sigma != 1 || !constant {
			t.Errorf("vectors that are all %g: sigma %g, constant %v", v, sigma, constant)
		}
	}
}

// The map keeps float32's precision relative to the spread of the data, wherever the
// data is and in any unit.
func TestRBFAgainstDefinition(t *testing.T) {
	for _, unit := range []float32{1e-15, 1, 1e15} {
		for _, shift := range []float32{0, 100} {
			rows := synth.Pairs(synth.Config{Items: 60, Dims: []int{11}, Seed: 4}).Vectors[0]
			for _, x := range rows {
				for j := range x {
					x[j] = (x[j] + shift) * unit
				}
			}
			mo := momentsOf(rows)
			sigma, _ := mo.Sigma()
			f := rbfMap(mo.Mean, sigma, nil)
			anchors := make([]float32, 20*11)
			for j := range 20 {
				f.centre(anchors[j*11:(j+1)*11], rows[2*j])
			}
			f = rbfMap(mo.Mean, sigma, anchors)
			var scratch MapScratch
			phi := make([]float32, f.Size())
			for _, x := range rows {
				f.apply(phi, []Vector{Dense(x)}, &scratch)
				for j, v := range phi {
					want := math.Exp(-squaredDistance(x, rows[2*j]) / sigma)
					stopIf(t, !approx(float64(v), want, 2e-6), "unit %g, shift %g: phi %.9g, want %.9g", unit,
						shift, v, want)
				}
			}
		}
	}
}

func TestMapsOfExtremeVectors(t *testing.T) {
	data := synth.Pairs(synth.Config{Items: 60, Dims: []int{4, 4}, Seed: 4})
	modalities := modalitiesOf([]int{4, 4})
	result := trained(t, data, settled(modalities, Options{Map: map[string]MapKind{"text": MapLinear}}))
	e := result.Model.NewEncoder()
	z := make([]float64, 64)
	for _, x := range [][]float32{
		{0, 0, 0, 0},
		{math.MaxFloat32, -math.MaxFloat32, math.MaxFloat32, math.MaxFloat32},
		{math.SmallestNonzeroFloat32, 0, 0, 0}, {1e25, 1, 1, 1},
	} {
		for m := range modalities {
			must(t, e.Project(z, m, x))
			for _, v := range z {
				stopIf(t, v-v != 0, "modality %d projects %v to %v", m, x, z)
			}
		}
	}
	far := make([]float32, e.Model().Features(0))
	err := e.MapVector(far, 0, Dense([]float32{1e30, 0, 0, 0}))
	stopIf(t, err != nil || slices.Max(far) != 0, "a vector far from all: %v, %v", far, err)
	linear := make([]float32, 5)
	err = e.MapVector(linear, 1, Dense(data.Vectors[1][7]))
	stopIf(t, err != nil || linear[4] != 1, "%v, %v", linear, err)
	for j, v := range data.Vectors[1][7] {
		want := float32(float64(v) - momentsOf(data.Vectors[1]).Mean[j])
		failIf(t, linear[j] != want, "linear feature %d is %g, want %g", j, linear[j], want)
	}
}

func TestProjectRefuses(t *testing.T) {
	result := trained(t, synth.Pairs(synth.Config{}), Options{})
	e := result.Model.NewEncoder()
	z := make([]float64, 64)
	var dim *DimensionError
	err := e.Project(z, 1, make([]float32, 8))
	failIf(t, !errors.As(err, &dim) || *dim != (DimensionError{"text", 8, 5}), "wrong length: %v", err)
	nan := float32(math.NaN())
	for _, v := range []float32{nan, float32(math.Inf(1)), float32(math.Inf(-1))} {
		err := e.Project(z, 1, []float32{0, 0, 0, v, 0})
		failIf(t, !like(err, ErrNotFinite), "%v: %v", v, err)
	}
	for _, m := range []int{-1, 2} {
		err := e.Project(z, m, make([]float32, 8))
		failIf(t, !like(err, ErrMismatch), "modality %d: %v", m, err)
	}
	errorIs(t, e.Project(z[1:], 0, make([]float32, 8)), ErrMismatch)
	errorIs(t, e.MapVector(make([]float32, 3), 0, Dense(make([]float32, 8))), ErrMismatch)
}

// TestProjectVectorsIsProject: a vector has the same bits alone and among any others.
func TestProjectVectorsIsProject(t *testing.T) {
	const n, q = 3*parallel.Rows + 5, 72
	data := synth.Pairs(synth.Config{Items: n, Dims: []int{37, 300}, Seed: 8})
	data.Vectors[0][3] = slices.Repeat([]float32{1e30}, 37) // far from all, among others
	result := trained(t, data.Slice(10, n), Options{Bits: q, Anchors: 100,
		Map: map[string]MapKind{"text": MapLinear}})
	alone, together := result.Model.NewEncoder(), result.Model.NewEncoder()
	for m, xs := range data.Vectors {
		want := make([]float64, n*q)
		for i, x := range xs {
			must(t, alone.Project(want[i*q:(i+1)*q], m, x))
		}
		for _, size := range []int{0, 1, 2, 7, parallel.Rows, parallel.Rows + 1, n} {
			for from := 0; from+size <= n; from += size + 1 {
				got := make([]float64, size*q)
				must(t, together.ProjectVectors(got, m, denseAll(xs[from:from+size])))
				stopIf(t, !slices.Equal(got, want[from*q:(from+size)*q]),
					"modality %d: %d vectors from %d on have other projections together", m, size, from)
			}
		}
	}
	z := slices.Repeat([]float64{7}, 2*q)
	bad := [][]float32{data.Vectors[0][0], slices.Repeat([]float32{float32(math.NaN())}, 37)}
	err := together.ProjectVectors(z, 0, denseAll(bad))
	failIf(t, !errors.Is(err, ErrNotFinite) || slices.Max(z) != 7 || slices.Min(z) != 7,
		"NaN in the second vector: %v", err)
	errorIs(t, together.ProjectVectors(z, 0, denseAll(bad[:1])), ErrMismatch)
}

func TestMomentsAreTheSameOnAnyMachine(t *testing.T) {
	for _, d := range []int{1, momentColumns, 3*momentColumns + 7} {
		rows := synth.Pairs(synth.Config{Items: 50, Dims: []int{d}, Seed: 3}).Vectors[0]
		whole, parts := NewMoments(Modality{Dim: d}), NewMoments(Modality{Dim: d})
		whole.Add(denseAll(rows), 1)
		parts.Add(denseAll(rows), 5)
		failIf(t, whole.N != parts.N || !slices.Equal(whole.Mean, parts.Mean) ||
			!slices.Equal(whole.m2, parts.m2), "%d dimensions: other moments with other workers", d)
	}
}

// TestLinearMapIsFinite: even if the difference from the mean is beyond float32.
func TestLinearMapIsFinite(t *testing.T) {
	f := linearMap([]float64{-3e38, 3e38})
	phi := make([]float32, 3)
	f.apply(phi, []Vector{Dense([]float32{3e38, -3e38})}, new(MapScratch))
	want := []float32{math.MaxFloat32, -math.MaxFloat32, 1}
	failIf(t, !slices.Equal(phi, want), "%v, want %v", phi, want)
}

func TestProjectAllocatesNothing(t *testing.T) {
	if effort.Race {
		t.Skip("the race detector takes from pools at random")
	}
	result := trained(t, synth.Pairs(synth.Config{}), Options{})
	e, z, x := result.Model.NewEncoder(), make([]float64, 64), make([]float32, 8)
	code := make([]uint64, 1)
	if n := testing.AllocsPerRun(100, func() {
		stopIf(t, e.Project(z, 0, x) != nil || !result.Model.LabelCode(code, []uint32{1, 3}), "refused")
	}); n != 0 {
		t.Fatalf("%g allocations", n)
	}
}

func BenchmarkProject(b *testing.B) {
	data := synth.Pairs(synth.Config{Items: 1000, Classes: 10, Dims: []int{128, 10}})
	modalities := modalitiesOf([]int{128, 10})
	result := trained(b, data, Options{})
	for m, mod := range modalities {
		b.Run(mod.Name, func(b *testing.B) {
			e, z := result.Model.NewEncoder(), make([]float64, 64)
			i := 0
			for b.Loop() {
				must(b, e.Project(z, m, data.Vectors[m][i%1000]))
				i++
			}
		})
	}
}

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
			for _, v := range [][2]float64{{whole.Mean[j], parts.Mean[j]}, {whole.m2[j], parts.m2[j]}} {
				stopIf(t, !approx(v[0], v[1], 1e-9*max(1, math.Abs(v[0]))), "mean or squares %g, not %g",
					v[1], v[0])
			}
			stopIf(t, whole.low[j] != parts.low[j], "least %g, not %g", parts.low[j], whole.low[j])
		}
	}
}
