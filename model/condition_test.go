package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// TestConditionAgainstInverse: the estimate is a lower bound of the exact condition
// number in the 1-norm, and not far below it. So it is within a factor of k of the
// condition number of the singular values.
func TestConditionAgainstInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		k := 1 + rng.IntN(30)
		rank := 1 + rng.IntN(k)
		gamma := math.Pow(10, -8*rng.Float64())
		x := mat.NewDense(rank, k, nil)
		for i := range rank {
			for j := range k {
				x.Set(i, j, rng.NormFloat64()*math.Pow(10, 2*rng.Float64()))
			}
		}
		var a, inverse mat.Dense
		a.Mul(x.T(), x)
		for i := range k {
			a.Set(i, i, a.At(i, i)+gamma)
		}
		l := dense.Of(k, k, slices.Clone(a.RawMatrix().Data))
		norm := gramNorm(l)
		if got := mat.Norm(&a, 1); !approx(norm, got, 1e-12*got) {
			t.Fatalf("norm %g, want %g", norm, got)
		}
		if !dense.Cholesky(l, 1) {
			continue // the condition is beyond float64
		}
		if err := inverse.Inverse(&a); err != nil {
			continue
		}
		exact := norm * mat.Norm(&inverse, 1)
		if exact > 1e12 {
			continue // the oracle itself is not good enough here
		}
		got := norm * inverseNorm(l, 2)
		if got > exact*1.001 || got < exact/4 {
			t.Errorf("k %d, rank %d, gamma %g: %g, exact %g", k, rank, gamma, got, exact)
		}
		var svd mat.SVD
		svd.Factorize(&a, mat.SVDNone)
		if two := svd.Cond(); got > two*float64(k)*1.001 || got < two/float64(k)/4 {
			t.Errorf("k %d: %g, by singular values %g", k, got, two)
		}
	}
}
