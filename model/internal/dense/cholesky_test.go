package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// definite returns a positive definite matrix with NaN above the diagonal, and the same
// matrix whole.
func definite(rng *rand.Rand, k, gap int, ridge float64) (lower Matrix[float64], whole *mat.SymDense) {
	x := random[float64](rng, k+3, k, 0)
	lower = random[float64](rng, k, k, gap)
	whole = mat.NewSymDense(max(k, 1), nil)
	for i := range k {
		clear(lower.row(i))
	}
	AddGram(lower, x, 1)
	for i := range k {
		row := lower.row(i)
		row[i] += ridge
		for j := range k {
			if j > i {
				row[j] = math.NaN()
			} else {
				whole.SetSym(i, j, row[j])
			}
		}
	}
	return lower, whole
}

func TestCholesky(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	eachSet(t, func(t *testing.T) {
		for _, k := range some([]int{1, 2, 7, 95, 96, 97, 192, 200, 333}) {
			lower, whole := definite(rng, k, k%3, .1)
			b := random[float64](rng, 40, k, k%2)
			want := mat.NewDense(k, b.Rows, nil)
			var chol mat.Cholesky
			if !chol.Factorize(whole) {
				t.Fatal("gonum finds it indefinite")
			}
			right := mat.NewDense(k, b.Rows, nil)
			for i := range b.Rows {
				right.SetCol(i, b.row(i))
			}
			if err := chol.SolveTo(want, right); err != nil {
				t.Fatal(err)
			}
			var l, x Matrix[float64]
			for _, workers := range []int{1, 2, 5} {
				gotL, gotX := clone(lower), clone(b)
				if !Cholesky(gotL, workers) {
					t.Fatalf("k = %d: not positive definite", k)
				}
				CholeskySolve(gotX, gotL, workers)
				if workers == 1 {
					l, x = gotL, gotX
				} else if err := same(gotL, l, nil); err != nil {
					t.Fatalf("k = %d, L with %d workers: %v", k, workers, err)
				} else if err := same(gotX, x, nil); err != nil {
					t.Fatalf("k = %d, the solution with %d workers: %v", k, workers, err)
				}
			}
			// The backward error: L L' is the matrix, whatever its condition.
			for i := range k {
				for j := range i + 1 {
					sum := 0.0
					for p := range j + 1 {
						sum += l.row(i)[p] * l.row(j)[p]
					}
					bound := 1e-13 * math.Sqrt(whole.At(i, i)*whole.At(j, j))
					if !(math.Abs(sum-whole.At(i, j)) <= bound) {
						t.Fatalf("k = %d: element (%d, %d) of L L' is %v, want %v", k, i, j, sum,
							whole.At(i, j))
					}
				}
			}
			solved := Of(b.Rows, k, make([]float64, b.Rows*k))
			for i := range b.Rows {
				mat.Col(solved.row(i), i, want)
			}
			if err := near(x, solved, 1e-13*chol.Cond(), nil); err != nil {
				t.Fatalf("k = %d: %v", k, err)
			}
		}
	})
}

// TestCholeskyHalves: half of a solution, times the factor, is the right side; and the rows
// of the inverse are the halves of the identity, to the last bit for any number of workers.
func TestCholeskyHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(55, 56))
	eachSet(t, func(t *testing.T) {
		for _, k := range some([]int{1, 7, 47, 48, 49, 241, 333}) {
			l, _ := definite(rng, k, k%3, .1)
			if !Cholesky(l, 1) {
				t.Fatalf("k = %d: not positive definite", k)
			}
			times := func(x Matrix[float64]) Matrix[float64] { // x L'
				product := Of(x.Rows, k, make([]float64, x.Rows*k))
				for i := range x.Rows {
					for j := range k {
						for p := range j + 1 {
							product.row(i)[j] += x.row(i)[p] * l.row(j)[p]
						}
					}
				}
				return product
			}
			b := random[float64](rng, 40, k, k%2)
			half := clone(b)
			CholeskyForward(half, l, 2)
			if err := near(times(half), b, 1e-10, nil); err != nil {
				t.Fatalf("k = %d: %v", k, err)
			}
			for _, n := range []int{0, 1, k / 2, k} {
				identity := Of(n, k, make([]float64, n*k))
				for i := range n {
					identity.row(i)[i] = 1
				}
				inverse, other := Of(n, k, make([]float64, n*k)), random[float64](rng, n, k, 0)
				CholeskyInverse(inverse, l, 1)
				if err := near(times(inverse), identity, 1e-10, nil); err != nil {
					t.Fatalf("k = %d, %d rows of the inverse: %v", k, n, err)
				}
				CholeskyInverse(other, l, 5)
				if err := same(other, inverse, nil); err != nil {
					t.Fatalf("k = %d, %d rows by 5 workers: %v", k, n, err)
				}
			}
		}
	})
}

func TestCholeskyRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	const k = 150
	for _, at := range []int{0, 50, k - 1} {
		for name, spoil := range map[string]func(a Matrix[float64]){
			"negative": func(a Matrix[float64]) { a.row(at)[at] = -1 },
			"zero":     func(a Matrix[float64]) { a.row(at)[at] = 0 },
			"NaN":      func(a Matrix[float64]) { a.row(at)[at] = math.NaN() },
			"infinity": func(a Matrix[float64]) { a.row(at)[at] = math.Inf(1) },
			"another row's multiple": func(a Matrix[float64]) {
				i, j := max(at, 1), at/2
				full := func(i, j int) *float64 { return &a.row(max(i, j))[min(i, j)] }
				for p := range k {
					*full(i, p) = 3 * *full(j, p)
				}
				*full(i, i) = 9 * *full(j, j)
			},
		} {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				a, _ := definite(rng, k, 0, 0)
				spoil(a)
				if Cholesky(a, 1) {
					t.Error("positive definite")
				}
			})
		}
	}
}

func BenchmarkCholesky(b *testing.B) {
	rng := rand.New(rand.NewPCG(55, 56))
	for _, k := range []int{320, 800, 2000} {
		lower, whole := definite(rng, k, 0, 1)
		a, rows := clone(lower), random[float64](rng, 128, k, 0)
		benchSets(b, fmt.Sprint(k), float64(k)*float64(k)*float64(k)/3, func() {
			copy(a.Data, lower.Data)
			if !Cholesky(a, 1) {
				b.Fatal("not positive definite")
			}
		}, func() {
			var chol mat.Cholesky
			if !chol.Factorize(whole) {
				b.Fatal("not positive definite")
			}
		})
		x := clone(rows)
		benchSets(b, fmt.Sprintf("solve/%d", k), 2*128*float64(k)*float64(k), func() {
			copy(x.Data, rows.Data)
			CholeskySolve(x, a, 1)
		}, nil)
	}
}
