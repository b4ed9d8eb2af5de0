package model

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/model/internal/rank"
)

// The projections of a model have the same bits on every processor: replicas of a shard, and databases to
// which a model is exported, give an item the same code. On arm64 the hash was
// another one while the compiler could fuse products with sums there (make arm64).
func TestSameBitsOnAllProcessors(t *testing.T) {
	const dim, anchors, bits, items = 37, 21, 16, 300
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() float64 { return rng.Float64() - .3 }
	vector := func() []float32 {
		x := make([]float32, dim)
		for j := range x {
			x[j] = float32(number())
		}
		return x
	}
	floats := func(n int) []float64 {
		x := make([]float64, n)
		for j := range x {
			x[j] = number()
		}
		return x
	}
	sparse := func() Vector {
		v := Vector{}
		for j := range uint32(dim) {
			if rng.IntN(3) == 0 {
				v.Index, v.Value = append(v.Index, j), append(v.Value, float32(rng.Float64()))
			}
		}
		return v
	}
	positive := func(n int) []float64 {
		x := floats(n)
		for j := range x {
			x[j] = math.Abs(x[j]) + .01
		}
		return x
	}
	h := fnv.New64a()
	project := func(mod Modality, f *Map, vector func() Vector) {
		t.Helper()
		m, err := New(Parts{Bits: bits, Modalities: []Modality{mod}, Maps: []*Map{f}, Gammas: []float64{1},
			Projections: [][]float64{floats(bits * f.Size())}, Fusion: []float64{1}, Method: MethodCCAITQ})
		if err != nil {
			t.Fatal(err)
		}
		e := m.NewEncoder()
		z := make([]float64, bits)
		for range items {
			if err := e.ProjectVectors(z, 0, []Vector{vector()}); err != nil {
				t.Fatal(err)
			}
			_ = binary.Write(h, binary.LittleEndian, z)
		}
	}
	denseVector := func() Vector { return Dense(vector()) }
	for kind := FeaturesRaw; kind <= FeaturesHellingerL2; kind++ {
		prepared := &Features{Kind: kind}
		switch kind {
		case FeaturesZScore:
			prepared.Shift, prepared.Scale = floats(dim), positive(dim)
		case FeaturesLog:
			prepared.Shift = positive(dim)
		}
		var rows []float32
		for range anchors {
			rows = append(rows, vector()...)
		}
		for _, kind := range []MapKind{MapRBF, MapRBFLinear} {
			f := rbfMap(floats(dim), 2, rows)
			f.features, f.kind = prepared, kind
			project(Modality{Name: "m", Dim: dim}, f, denseVector)
		}
		project(Modality{Name: "m", Dim: dim}, NewLinearMap(Modality{}, prepared, floats(dim)), denseVector)
		for _, kind := range []MapKind{MapRBF, MapLinear, MapRBFLinear} {
			for _, full := range []bool{true, false} { // packed or in lists
				var some []Vector
				for range anchors {
					v := sparse()
					if !full {
						v.Index, v.Value = v.Index[:1], v.Value[:1]
					}
					some = append(some, v)
				}
				f := newSparseMap(kind, floats(dim), 2, csrOf(some))
				f.features = &Features{Kind: prepared.Kind, Scale: prepared.Scale}
				if prepared.Kind == FeaturesLog {
					f.features.Shift = prepared.Shift
				}
				project(Modality{Name: "m", Dim: dim, Sparse: true}, f, sparse)
			}
		}
	}
	fused := make([]float64, bits)
	for range items {
		f := rank.Fusion{Weights: []float64{.3, .7}, Mean: floats(bits)}
		f.Fuse(fused, [][]float64{floats(bits), floats(bits)})
		_ = binary.Write(h, binary.LittleEndian, fused)
	}
	if got, want := h.Sum64(), uint64(0x4ca872bacbccaec7); got != want {
		t.Errorf("hash %#x, want %#x", got, want)
	}
}

func TestLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		x := math.Exp(float64(rng.IntN(1400)-700)) * (1 + rng.Float64())
		if i%3 == 0 {
			x = 1 + (rng.Float64()-.5)*math.Exp(-float64(rng.IntN(36)))
		}
		want, got := math.Log(x), log(x)
		if math.Abs(got-want) > 2*math.Abs(want-math.Nextafter(want, 2*want+1)) {
			t.Fatalf("log(%v) = %v, not %v", x, got, want)
		}
		x = math.Abs(x - 1)
		if want, got := math.Log1p(x), log1p(x); math.Abs(got-want) > 1e-15*want {
			t.Fatalf("log1p(%v) = %v, not %v", x, got, want)
		}
	}
	for _, x := range []float64{0, math.Inf(1), 1} {
		if log(x) != math.Log(x) || log1p(x) != math.Log1p(x) {
			t.Error(x, log(x), log1p(x))
		}
	}
	if got := log(math.SmallestNonzeroFloat64); math.Abs(got+744.4400719213812) > 1e-12 {
		t.Error(got)
	}
}
