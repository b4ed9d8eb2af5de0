package dense

import (
	"math"
	"math/rand/v2"
	"testing"
)

// gramOf returns a + I for a random Gram matrix a of n vectors of k.
func gramOf(rng *rand.Rand, n, k int) (a Matrix[float64], x Matrix[float64]) {
	x = Of(n, k, make([]float64, n*k))
	for i := range x.Data {
		x.Data[i] = rng.NormFloat64()
	}
	a = Of(k, k, make([]float64, k*k))
	AddGram(a, x, 1)
	for i := range k {
		a.Data[i*k+i]++
	}
	return a, x
}

// The factor after updates is that of the sum, beginning with a multiple of I.
func TestCholeskyUpdate(t *testing.T) {
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 63, 100, 130} {
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		want, x := gramOf(rng, k+20, k)
		l := Of(k, k, make([]float64, k*k))
		for i := range k {
			l.Data[i*k+i] = 1
		}
		for i := range x.Rows {
			CholeskyUpdate(l, append([]float64(nil), x.row(i)...))
		}
		if !Cholesky(want, 1) {
			t.Fatal("not positive definite")
		}
		for i := range k {
			for j := range i + 1 {
				if got, want := l.row(i)[j], want.row(i)[j]; !(math.Abs(got-want) <= 1e-12*float64(k)*(1+math.Abs(want))) {
					t.Fatalf("k = %d: L[%d,%d] is %g, want %g", k, i, j, got, want)
				}
			}
		}
	}
}

func TestCholeskyUpdateByNothing(t *testing.T) {
	a, _ := gramOf(rand.New(rand.NewPCG(2, 2)), 30, 9)
	Cholesky(a, 1)
	before := append([]float64(nil), a.Data...)
	CholeskyUpdate(a, make([]float64, 9))
	for i := range 9 {
		for j := range i + 1 {
			if a.Data[i*9+j] != before[i*9+j] {
				t.Fatalf("L[%d,%d] has changed", i, j)
			}
		}
	}
}

func TestCholeskySolveRow(t *testing.T) {
	for _, k := range []int{1, 3, 4, 5, 96, 97, 200} {
		rng := rand.New(rand.NewPCG(3, uint64(k)))
		l, x := gramOf(rng, k+20, k)
		if !Cholesky(l, 1) {
			t.Fatal("not positive definite")
		}
		want := Of(1, k, append([]float64(nil), x.row(0)...))
		CholeskySolve(want, l, 1)
		got := append([]float64(nil), x.row(0)...)
		CholeskySolveRow(got, l)
		for j := range got {
			if !(math.Abs(got[j]-want.Data[j]) <= 1e-10*(1+math.Abs(want.Data[j]))) {
				t.Fatalf("k = %d: element %d is %g, want %g", k, j, got[j], want.Data[j])
			}
		}
	}
}

func BenchmarkCholeskyUpdate(b *testing.B) {
	const k = 800
	l, x := gramOf(rand.New(rand.NewPCG(4, 4)), k, k)
	if !Cholesky(l, 1) {
		b.Fatal("not positive definite")
	}
	row := make([]float64, k)
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			copy(row, x.row(0))
			CholeskyUpdate(l, row)
		}
	})
	b.Run("solve", func(b *testing.B) {
		for b.Loop() {
			copy(row, x.row(0))
			CholeskySolveRow(row, l)
		}
	})
	b.Run("factor", func(b *testing.B) {
		for b.Loop() {
			a := Of(k, k, append([]float64(nil), l.Data...))
			for i := range k {
				for j := range i {
					a.Data[i*k+j] = 0
				}
			}
			Cholesky(a, 1)
		}
	})
}
