package model

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// gramNorm returns the 1-norm of the symmetric matrix with lower triangle a: the
// largest sum of absolute values of a column.
func gramNorm(a dense.Matrix[float64]) float64 {
	sums := make([]float64, a.Cols)
	for i := range a.Rows {
		row := a.Data[i*a.Stride : i*a.Stride+i+1]
		for j, v := range row {
			v = math.Abs(v)
			sums[j] += v
			if j < i {
				sums[i] += v
			}
		}
	}
	return floats.Max(sums)
}

// inverseNorm estimates the 1-norm of (L L')^-1 from the Cholesky factor L, by the
// method of Hager and Higham (Higham, "FORTRAN codes for estimating the one-norm of a
// real or complex matrix", ACM TOMS 1988; LAPACK's dpocon). The estimate is a lower
// bound, seldom below a third of the norm. It costs a handful of solutions of k^2
// multiplications each.
func inverseNorm(l dense.Matrix[float64], workers int) float64 {
	k := l.Cols
	solve := func(x []float64) { dense.CholeskySolve(dense.Of(1, k, x), l, workers) }
	x := make([]float64, k)
	for i := range x {
		x[i] = 1 / float64(k)
	}
	solve(x)
	estimate := floats.Norm(x, 1)
	if k == 1 {
		return estimate
	}
	last := -1
	sign := make([]float64, k)
	for range 4 {
		// The gradient of |A^-1 x| is A^-1 sgn(A^-1 x). It points to the column to try
		// next.
		for i, v := range x {
			sign[i] = math.Copysign(1, v)
		}
		solve(sign)
		column := 0
		for i, v := range sign {
			if math.Abs(v) > math.Abs(sign[column]) {
				column = i
			}
		}
		if column == last {
			break
		}
		last = column
		clear(x)
		x[column] = 1
		solve(x)
		norm := floats.Norm(x, 1)
		if norm <= estimate {
			break
		}
		estimate = norm
	}
	// This vector catches what the steps above can miss by cancellation.
	for i := range x {
		x[i] = 1 + float64(i)/float64(k-1)
		if i%2 == 1 {
			x[i] = -x[i]
		}
	}
	solve(x)
	return max(estimate, 2*floats.Norm(x, 1)/(3*float64(k)))
}
