package dense

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestExtremeNumbers gives the products denormals, huge numbers, infinities and NaN. A
// NaN reaches the elements of its own row or column and no others. A row is the same as
// alone.
func TestExtremeNumbers(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		t.Run("32", func(t *testing.T) { testExtremes[float32](t, 1e-45, math.MaxFloat32) })
		t.Run("64", func(t *testing.T) { testExtremes[float64](t, 5e-324, math.MaxFloat64) })
	})
}

func testExtremes[T Float](t *testing.T, tiny, huge T) {
	rng := rand.New(rand.NewPCG(61, 62))
	special := []T{0, T(math.Copysign(0, -1)), tiny, -tiny, huge, -huge, T(math.Inf(1)), T(math.Inf(-1)),
		T(math.NaN())}
	for _, shape := range [][3]int{{1, 1, 1}, {3, 5, 47}, {8, 129, 49}, {9, 257, 25}, {17, 64, 97}} {
		m, d, n := shape[0], shape[1], shape[2]
		a, b := random[T](rng, m, d, 1), random[T](rng, n, d, 2)
		for range 1 + (m+n)/4 {
			a.row(rng.IntN(m))[rng.IntN(d)] = special[rng.IntN(len(special))]
			b.row(rng.IntN(n))[rng.IntN(d)] = special[rng.IntN(len(special))]
		}
		got := random[T](rng, m, n, 3)
		want := clone(got)
		MulNT(got, a, Pack(b))
		for i := range m {
			for j := range n {
				poisoned := false
				for p, v := range a.row(i) {
					product := v * b.row(j)[p]
					poisoned = poisoned || product != product
				}
				if g := got.row(i)[j]; poisoned && g == g {
					t.Fatalf("%v: element (%d, %d) is %v, want NaN", shape, i, j, g)
				}
				want.row(i)[j] = got.row(i)[j]
			}
		}
		if err := same(got, want, nil); err != nil {
			t.Fatalf("%v: written between the rows: %v", shape, err)
		}
		for i := range m {
			alone := Of(1, n, make([]T, n))
			MulNT(alone, a.Slice(i, i+1), Pack(b))
			if err := same(Of(1, n, got.row(i)), alone, nil); err != nil {
				t.Fatalf("%v: row %d alone: %v", shape, i, err)
			}
		}
	}
}

// TestCholeskySolveIsBackwardStable: x A = b up to rounding, at the borders of blocks
// and with a nearly singular matrix. It checks the residual, without another solver.
func TestCholeskySolveIsBackwardStable(t *testing.T) {
	rng := rand.New(rand.NewPCG(63, 64))
	eachSet(t, func(t *testing.T) {
		for _, k := range some([]int{1, 23, 24, 25, 47, 48, 49, 71, 72, 95, 96, 97, 143, 144, 145, 193}) {
			for _, ridge := range []float64{1e-9, 1} {
				lower, whole := definite(rng, k, 1, ridge)
				for _, rows := range []int{0, 1, 3, 33} {
					b := random[float64](rng, rows, k, 2)
					x, l := clone(b), clone(lower)
					if !Cholesky(l, 2) {
						t.Fatalf("k = %d, ridge %g: not positive definite", k, ridge)
					}
					CholeskySolve(x, l, 2)
					for r := range rows {
						norm, size := 0.0, 0.0
						for j := range k {
							size = max(size, math.Abs(x.row(r)[j]))
						}
						for i := range k {
							norm = max(norm, math.Abs(whole.At(i, i)))
						}
						for j := range k {
							sum := -b.row(r)[j]
							for i, v := range x.row(r) {
								sum += v * whole.At(i, j)
							}
							if bound := 1e-13 * float64(k) * (norm*size + 1); !(math.Abs(sum) <= bound) {
								t.Fatalf("k = %d, ridge %g, row %d: residual %g, want at most %g", k, ridge,
									r, sum, bound)
							}
						}
					}
				}
			}
		}
	})
}
