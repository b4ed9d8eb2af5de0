package model

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// vectorSource is a source over vectors of either form, by modality and item.
type vectorSource struct {
	vectors [][]Vector
	labels  [][]uint32
}

func (s *vectorSource) Examples(context.Context) iter.Seq2[Example, error] {
	return func(yield func(Example, error) bool) {
		ex := Example{Vectors: make([]Vector, len(s.vectors))}
		for i, labels := range s.labels {
			for t, rows := range s.vectors {
				ex.Vectors[t] = rows[i]
			}
			ex.Labels = labels
			if !yield(ex, nil) {
				return
			}
		}
	}
}

// texts returns texts of items of the shape of NUS-WIDE, in both forms.
func texts(t testing.TB, seed uint64, from, to int) (sparse, dense []Vector, labels [][]uint32) {
	t.Helper()
	g := need(synth.NewNUSWide(seed, synth.DefaultNUSWideNoise))(t)
	for i := from; i < to; i++ {
		sparse = append(sparse, Sparse(g.AppendText(nil, nil, i)))
		x := make([]float32, synth.NUSWideText)
		g.Text(x, i)
		dense = append(dense, Dense(x))
		labels = append(labels, g.AppendLabels(nil, i))
	}
	return sparse, dense, labels
}

// spread moves the dimensions of vectors apart, to d of them, as sparse vectors.
func spread(xs []Vector, d int) (wide []Vector) {
	for _, x := range xs {
		var index []uint32
		for _, j := range x.Index {
			index = append(index, j*uint32(d/synth.NUSWideText))
		}
		wide = append(wide, Sparse(index, x.Value))
	}
	return wide
}

func trainOn(t testing.TB, m []Modality, xs []Vector, labels [][]uint32, opt Options) *Result {
	t.Helper()
	return need(Train(t.Context(), m, &vectorSource{vectors: [][]Vector{xs}, labels: labels}, opt))(t)
}

// ulps returns the difference of two features in roundings of float32; below .1 in
// roundings of .1.
func ulps(a, b float64) float64 { return math.Abs(a-b) / max(.1, math.Abs(b)) * (1 << 23) }

// sparseDistance returns the squared distance of two sparse vectors, in float64.
func sparseDistance(x, y Vector) (sum float64) {
	numbers := map[uint32]float64{}
	for e, j := range x.Index {
		numbers[j] += float64(x.Value[e])
	}
	for e, j := range y.Index {
		numbers[j] -= float64(y.Value[e])
	}
	for _, v := range numbers {
		sum += v * v
	}
	return sum
}

// TestSparseFeaturesAreThoseOfDense: for every kind of features and map and both
// layouts of anchors, up to rounding of float32. Those of RBF are within a few ulps of
// their definition; dense ones, from products with more terms, are less exact.
func TestSparseFeaturesAreThoseOfDense(t *testing.T) {
	effort.LongWithRace(t)
	const n = 700
	sparse, vectors, _ := texts(t, 3, 0, n)
	sparse, vectors = append(sparse, Sparse(nil, nil)),
		append(vectors, Dense(make([]float32, synth.NUSWideText)))
	for kind := range FeatureKind(len(featureNames)) {
		made := func(m Modality, xs []Vector) (*Features, *Moments, []Vector) {
			mo := NewMoments(m)
			mo.Add(xs, 2)
			mo.Settle()
			f := NewFeatures(kind, mo)
			own := make([]Vector, len(xs))
			for i, x := range xs {
				own[i].Set(m, x)
			}
			f.ApplyAll(own)
			mo = NewMoments(m)
			mo.Add(own, 2)
			mo.Settle()
			return f, mo, own
		}
		fd, md, od := made(Modality{Dim: synth.NUSWideText}, vectors)
		fs, ms, own := made(Modality{Dim: synth.NUSWideText, Sparse: true}, sparse)
		sd, _ := md.Sigma()
		ss, _ := ms.Sigma()
		failIf(t, !approx(ss/sd, 1, 1e-6), "%v: sigma %g, dense %g", kind, ss, sd)
		for _, mk := range []MapKind{MapRBF, MapLinear, MapRBFLinear} {
			d, packed := NewMap(mk, nil, 1, md, od[:100]), NewMap(mk, nil, 1, ms, own[:100])
			d.features, packed.features = fd, fs
			maps := []*Map{packed}
			if mk != MapLinear {
				stopIf(t, packed.anchors == nil, "%v, %v: the anchors are in lists", kind, mk)
				lists := *packed
				lists.anchors, lists.norms = nil, make([]float32, 100)
				listed := *packed.sparse
				listed.lists = newAnchorLists(&listed.anchors, d.dim)
				for i := range 100 {
					listed.squares = append(listed.squares, dense.SquaredNorm(listed.anchors.row(i).Value))
				}
				lists.sparse = &listed
				maps = append(maps, &lists)
			}
			k := d.Size()
			want, got := make([]float32, len(vectors)*k), make([]float32, len(vectors)*k)
			d.apply(want, vectors, new(MapScratch))
			for layout, f := range maps {
				f.apply(got, sparse, new(MapScratch))
				apart := 0.0
				for i, w := range want {
					apart = max(apart, ulps(float64(got[i]), float64(w)))
				}
				wrong := 0.0
				if mk == MapRBF {
					for i, v := range got[:60*k] {
						wrong = max(wrong, ulps(float64(v), math.Exp(-sparseDistance(own[i/k], own[i%k])/ss)))
					}
				}
				t.Logf("%v, %v, layout %d: %.1f ulp from dense features, %.1f from the definition", kind, mk,
					layout, apart, wrong)
				failIf(t, apart > 64 || wrong > 8,
					"%v, %v, layout %d: features are %g ulp from those of dense vectors, %g from the definition",
					kind, mk, layout, apart, wrong)
			}
		}
	}
}

// TestSparseFarFromTheOrigin: vectors that are declared sparse but are not may have a
// mean that is large against their spread.
func TestSparseFarFromTheOrigin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, d = 200, 30
	var xs []Vector
	for range n {
		x := make([]float32, d)
		for j := range x {
			x[j] = 100 + float32(rng.NormFloat64())
		}
		xs = append(xs, Dense(x))
	}
	m := Modality{Dim: d, Sparse: true}
	rows := make([]Vector, n)
	for i, x := range xs {
		rows[i].Set(m, x)
	}
	mo := NewMoments(m)
	mo.Add(rows, 1)
	mo.Settle()
	sigma, _ := mo.Sigma()
	f := NewMap(MapRBF, nil, 1, mo, rows[:50])
	stopIf(t, f.anchors == nil, "the anchors are in lists")
	phi := make([]float32, n*50)
	f.apply(phi, xs, new(MapScratch))
	for i, v := range phi {
		want := math.Exp(-squaredDistance(xs[i/50].Value, xs[i%50].Value) / sigma)
		stopIf(t, !approx(float64(v), want, 5e-5), "feature %d: %g, want %g", i, v, want)
	}
}

func TestSparseMoments(t *testing.T) {
	const d = 40
	rng := rand.New(rand.NewPCG(4, 5))
	var rows [][]float32
	for range 300 {
		x := make([]float32, d)
		x[0], x[2] = 7, -float32(rng.IntN(2))
		for range 5 {
			x[3+rng.IntN(d-3)] += float32(rng.ExpFloat64())
		}
		rows = append(rows, x)
	}
	want, m := momentsOf(rows), Modality{Dim: d, Sparse: true}
	got := NewMoments(m)
	for _, x := range rows {
		var v Vector
		v.Set(m, Dense(x))
		got.Add([]Vector{v}, 1)
	}
	got.Settle()
	failIf(t, got.N != want.N || !slices.Equal(got.low, want.low) || got.m2[0] != 0 || got.m2[1] != 0,
		"%v, want %v", got, want)
	for j := range d {
		failIf(t, !approx(got.Mean[j], want.Mean[j], 1e-12) || !approx(got.m2[j], want.m2[j], 1e-9),
			"column %d: mean %g and spread %g, want %g and %g", j, got.Mean[j], got.m2[j], want.Mean[j],
			want.m2[j])
	}
}

// Anchors of few dimensions are packed, those of many are lists.
func TestPacks(t *testing.T) {
	sparse, _, _ := texts(t, 9, 0, 100)
	near, wide := csrOf(sparse), csrOf(spread(sparse, 100_000))
	failIf(t, !packs(&near, synth.NUSWideText) || packs(&wide, 100_000),
		"the layout of anchors is the other one")
}
