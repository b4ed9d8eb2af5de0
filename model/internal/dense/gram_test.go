package dense

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// addTNOracle computes AddTN from its definition.
func addTNOracle[R, S Float](c Matrix[float64], a Matrix[R], b Matrix[S]) {
	for r := range a.Rows {
		for i, v := range a.row(r) {
			for j, w := range b.row(r) {
				c.row(i)[j] = add(c.row(i)[j], float64(v), float64(w))
			}
		}
	}
}

func gramShapes() [][2]int {
	shapes := [][2]int{{0, 3}, {3, 0}, {300, 7}, {128, 20}, {129, 24}, {256, 25}, {257, 49}, {600, 30},
		{5, 400}}
	for k := 1; k < 100; k += 3 {
		shapes = append(shapes, [2]int{1 + k%5, k})
	}
	return append(shapes, [2]int{3, unitRows + 1}, [2]int{2, unitPanels*24 + 1})
}

func TestAddGram(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		t.Run("32", testAddGram[float32])
		t.Run("64", testAddGram[float64])
	})
}

func testAddGram[S Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, s := range some(gramShapes()) {
		for _, gap := range []int{0, 5} {
			x, c := random[S](rng, s[0], s[1], gap), random[float64](rng, s[1], s[1], gap)
			want := clone(c)
			addTNOracle(want, x, x)
			for _, workers := range []int{0, 1, 2, 7} {
				got := clone(c)
				AddGram(got, x, workers)
				if err := same(got, want, above); err != nil {
					t.Fatalf("%v, gap %d, %d workers: %v", s, gap, workers, err)
				}
			}
		}
	}
}

func TestAddTN(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		t.Run("32", testAddTN[float32, float32])
		t.Run("64", testAddTN[float64, float64])
		t.Run("64and32", testAddTN[float64, float32])
	})
}

func testAddTN[R, S Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, s := range some(gramShapes()) {
		for _, m := range []int{0, 1, 8, 23, 33, 128} {
			gap := m % 3
			a, b := random[R](rng, s[0], m, gap), random[S](rng, s[0], s[1], gap)
			c := random[float64](rng, m, s[1], gap)
			want := clone(c)
			addTNOracle(want, a, b)
			for _, workers := range []int{1, 3} {
				got := clone(c)
				AddTN(got, a, b, workers)
				if err := same(got, want, nil); err != nil {
					t.Fatalf("%v and %d, %d workers: %v", s, m, workers, err)
				}
			}
		}
	}
}

// TestGramOfGonum compares the sums with those of another library.
func TestGramOfGonum(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	eachSet(t, func(t *testing.T) {
		const n, k, q = 1000, 300, 40
		x, h := random[float64](rng, n, k, 0), random[float64](rng, n, q, 0)
		a, b := Of(k, k, make([]float64, k*k)), Of(q, k, make([]float64, q*k))
		AddGram(a, x, 2)
		AddTN(b, h, x, 2)
		wantA, wantB := Of(k, k, make([]float64, k*k)), Of(q, k, make([]float64, q*k))
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(x), general(x), 0, general(wantA))
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(h), general(x), 0, general(wantB))
		if err := near(a, wantA, 1e-13, above); err != nil {
			t.Error("A:", err)
		}
		if err := near(b, wantB, 1e-12, nil); err != nil {
			t.Error("B:", err)
		}
	})
}

// TestGramOfParts: the sums are the same however the rows are cut into calls, for any
// number of workers.
func TestGramOfParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	eachSet(t, func(t *testing.T) {
		const n, k = 700, 250
		x := random[float32](rng, n, k, 0)
		want := Of(k, k, make([]float64, k*k))
		AddGram(want, x, 1)
		for _, c := range []struct{ rows, workers int }{{1, 1}, {37, 2}, {256, 3}, {600, 16}, {n, 64}} {
			if effort.Race && c.workers != 3 {
				continue
			}
			t.Run(fmt.Sprint(c), func(t *testing.T) {
				got := Of(k, k, make([]float64, k*k))
				for i := 0; i < n; i += c.rows {
					AddGram(got, x.Slice(i, min(i+c.rows, n)), c.workers)
				}
				if err := same(got, want, above); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

func general(m Matrix[float64]) blas64.General {
	return blas64.General{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}
}
