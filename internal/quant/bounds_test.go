package quant

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// ofVectors is a metric of two vectors, added up in float64.
func ofVectors(metric Metric, x, y []float32) float32 {
	var xy, xx, yy, apart float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, xx, yy, apart = xy+a*b, xx+a*a, yy+b*b, apart+(a-b)*(a-b)
	}
	switch {
	case metric == Dot:
		return Rounded(xy)
	case metric == SquaredL2Below:
		return Rounded(-apart)
	case xx == 0:
		return 0
	}
	return float32(max(-1, min(xy/(math.Sqrt(xx)*math.Sqrt(yy)), 1)))
}

// The bounds of all metrics hold for vectors of all magnitudes, equal and zero ones, and in many
// dimensions; what is left out is below the floor.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		dims := rapid.SampledFrom([]int{1, 2, 7, 8, 30, 300, 5000, MaxDims}).Draw(t, "dimensions")
		n := 60
		if dims > 1000 {
			n = 12
		}
		checkBounds(t, seed, dims, n,
			rapid.IntRange(-45, 38).Draw(t, "magnitude of the query"),
			rapid.IntRange(-45, 38).Draw(t, "magnitude of vectors"))
	})
}

func FuzzBounds(f *testing.F) {
	f.Add(uint64(1), uint8(48), int8(0), int8(0))
	f.Add(uint64(2), uint8(7), int8(-45), int8(-44))
	f.Add(uint64(3), uint8(255), int8(38), int8(38))
	f.Fuzz(func(t *testing.T, seed uint64, dims uint8, query, vectors int8) {
		checkBounds(t, seed, int(dims)+1, 20, int(query), int(vectors))
	})
}

// checkBounds compares the bounds of n vectors with the metrics. Magnitudes are powers of ten.
func checkBounds(t interface{ Fatalf(string, ...any) }, seed uint64, dims, n, queryMagnitude, magnitude int) {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := func(magnitude int) []float32 {
		scale := math.Pow(10, float64(magnitude))
		x := make([]float32, dims)
		for j := range x {
			x[j] = Rounded(r.NormFloat64() * scale)
		}
		return x
	}
	query := draw(queryMagnitude)
	var vectors [][]float32
	for i := range n {
		x := draw(magnitude)
		switch i % 6 {
		case 1:
			copy(x, query)
		case 2: // nearly the query, or its opposite
			for j := range x {
				x[j] = Rounded(float64(query[j]) * (1 + r.NormFloat64()*1e-6) * float64(1-2*(i/6%2)))
			}
		case 3: // most of it in one dimension, so that the rest is rounded off
			x[0] = Rounded(float64(x[0]) * 1e6)
		case 4:
			if i%12 == 4 {
				clear(x)
			}
		}
		vectors = append(vectors, x)
	}
	if seed%7 == 0 {
		clear(query)
	}
	w := NewWriter(VectorBytes(dims))
	w.Open()
	var rows []uint32
	for i, x := range vectors {
		w.Put(uint32(i), AppendVector(nil, x))
		rows = append(rows, uint32(i))
	}
	w.Cover(uint32(len(vectors)))
	table := w.Publish()
	for _, metric := range []Metric{Cosine, Dot, SquaredL2Below} {
		if metric == Cosine && ofVectors(Dot, query, query) == 0 {
			continue // to which there is no cosine, or one that is lost
		}
		var floors []float32
		for _, x := range vectors[:min(8, n)] {
			floors = append(floors, ofVectors(metric, x, query))
		}
		for _, floor := range append(floors, float32(math.Inf(-1))) {
			seen := map[uint32]bool{}
			table.EachBound(NewVectorQuery(query), metric, rows, floor,
				func(row uint32, least, most float32) float32 {
					seen[row] = true
					if s := ofVectors(metric, vectors[row], query); !(least <= s && s <= most) ||
						most < floor ||
						math.IsInf(float64(most), 0) || math.IsInf(float64(least), 0) {
						t.Fatalf("metric %d, row %d: %g, bounds %g and %g, floor %g", metric, row, s, least,
							most,
							floor)
					}
					return floor
				})
			for i, x := range vectors {
				if s := ofVectors(metric, x, query); !seen[uint32(i)] && s >= floor {
					t.Fatalf("metric %d, row %d of %g is left out, floor %g", metric, i, s, floor)
				}
			}
		}
	}
}

// Bounds of vectors of one magnitude are tight: few need to be read.
func TestBoundsAreTight(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const dims, n = 128, 500
	draw := func() []float32 {
		x := make([]float32, dims)
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		return x
	}
	w := NewWriter(VectorBytes(dims))
	w.Open()
	var rows []uint32
	for i := range n {
		w.Put(uint32(i), AppendVector(nil, draw()))
		rows = append(rows, uint32(i))
	}
	w.Cover(n)
	// of 2, and of some 100 and 500
	for metric, width := range map[Metric]float32{Cosine: .04, Dot: 4, SquaredL2Below: 12} {
		w.Publish().EachBound(NewVectorQuery(draw()), metric, rows, float32(math.Inf(-1)),
			func(row uint32, least, most float32) float32 {
				if most-least > width {
					t.Errorf("metric %d, row %d: bounds %g and %g", metric, row, least, most)
				}
				return float32(math.Inf(-1))
			})
	}
}
