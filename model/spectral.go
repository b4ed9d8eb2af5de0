package model

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// Constants of principal.
const (
	oversampled      = 32   // axes that are carried along beyond those that are asked for
	powerSteps       = 6    // after them the spaces of the axes agree to a part of (gap)^12
	largestGram      = 2048 // most dimensions for which the covariance matrix is formed: 32 MiB
	leastAxisShare   = 1e-12
	rowsAtATime      = 512
	maxCanonicalAxes = 1024 // sum over the spaces of cca-itq, which decides the time of its eigenvalues
)

// principal returns the first r principal axes of the rows of x, which are centred, and their
// variances, descending: axes has a row of length 1 for each, and r is at most x.Cols. It is
// subspace iteration with a Rayleigh-Ritz step (Halko, Martinsson and Tropp, "Finding structure with
// randomness", SIAM Review 2011, algorithm 4.4), exact where r is near the number of dimensions.
// Axes without variance complete the others to an orthonormal set. It costs powerSteps d^2 r
// multiplications beside those of the covariances, n d^2/2, or powerSteps 2 n d r where d is large.
func principal(ctx context.Context, x dense.Matrix[float32], r int, rng *rand.Rand) (axes dense.Matrix[float64], variances []float64, err error) {
	d, workers := x.Cols, workerCount()
	b := min(d, r+oversampled)
	var gram dense.Matrix[float64]
	if d <= largestGram {
		gram = dense.Of(d, d, make([]float64, d*d))
		dense.AddGram(gram, x, workers)
		mirror(gram)
	}
	// times returns the d x b product of X'X with q, which is d x b.
	times := func(q dense.Matrix[float64]) dense.Matrix[float64] {
		product := dense.Of(d, q.Cols, make([]float64, d*q.Cols))
		right := dense.PackTransposed(q)
		if gram.Data != nil {
			chunks(workers, d, mapRows, func(_, from, to int) { dense.MulNT(product.Slice(from, to), gram.Slice(from, to), right) })
			return product
		}
		some := dense.Of(rowsAtATime, q.Cols, make([]float64, rowsAtATime*q.Cols))
		for first := 0; first < x.Rows; first += rowsAtATime {
			n := min(rowsAtATime, x.Rows-first)
			chunks(workers, n, mapRows, func(_, from, to int) {
				dense.MulNT(some.Slice(from, to), x.Slice(first+from, first+to), right)
			})
			dense.AddTN(product, x.Slice(first, first+n), some.Slice(0, n), workers)
		}
		return product
	}
	q := dense.Of(d, b, make([]float64, d*b))
	if b == d {
		for i := range d {
			q.Data[i*d+i] = 1
		}
	} else {
		for i := range q.Data {
			q.Data[i] = rng.NormFloat64()
		}
		orthonormalise(q)
		for range powerSteps {
			if err := ctx.Err(); err != nil {
				return axes, nil, err
			}
			q = times(q)
			orthonormalise(q)
		}
	}
	small := dense.Of(b, b, make([]float64, b*b)) // q' X'X q
	dense.AddTN(small, q, times(q), workers)
	values, vectors, err := eigen(small)
	if err != nil {
		return axes, nil, err
	}
	axes = dense.Of(r, d, make([]float64, r*d))
	leading := dense.Of(r, b, vectors.Data[:r*b])
	right := dense.Pack(q)
	chunks(workers, r, mapRows, func(_, from, to int) { dense.MulNT(axes.Slice(from, to), leading.Slice(from, to), right) })
	for _, v := range values[:r] {
		variances = append(variances, max(v, 0)/float64(x.Rows))
	}
	return axes, variances, nil
}

// mirror copies the lower triangle of a square matrix to the upper one.
func mirror(m dense.Matrix[float64]) {
	for i := range m.Rows {
		for j := range i {
			m.Data[j*m.Stride+i] = m.Data[i*m.Stride+j]
		}
	}
}

// eigen returns the eigenvalues of a symmetric matrix, descending, and a row for the eigenvector of
// each, whose largest component is positive. It may overwrite m.
func eigen(m dense.Matrix[float64]) (values []float64, vectors dense.Matrix[float64], err error) {
	n := m.Rows
	symmetric := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			symmetric.SetSym(j, i, (m.Data[i*m.Stride+j]+m.Data[j*m.Stride+i])/2)
		}
	}
	var e mat.EigenSym
	if !e.Factorize(symmetric, true) {
		return nil, vectors, errors.New("the eigenvalues did not converge")
	}
	ascending := e.Values(nil)
	var v mat.Dense
	e.VectorsTo(&v)
	vectors = dense.Of(n, n, make([]float64, n*n))
	for k := range n {
		values = append(values, ascending[n-1-k])
		row := vectors.Data[k*n : (k+1)*n]
		largest := 0.0
		for i := range row {
			if row[i] = v.At(i, n-1-k); math.Abs(row[i]) > math.Abs(largest) {
				largest = row[i]
			}
		}
		if largest < 0 {
			for i := range row {
				row[i] = -row[i]
			}
		}
	}
	return values, vectors, nil
}

// orthonormalise replaces the columns of q, no more than it has rows, by an orthonormal basis of a
// space that contains them (Householder).
func orthonormalise(q dense.Matrix[float64]) {
	a, tau, work := general(q.Data, q.Rows, q.Cols), make([]float64, q.Cols), make([]float64, 1)
	lapack64.Geqrf(a, tau, work, -1)
	work = make([]float64, max(int(work[0]), 1))
	lapack64.Geqrf(a, tau, work, len(work))
	query := make([]float64, 1)
	lapack64.Orgqr(a, tau, query, -1)
	if need := int(query[0]); need > len(work) {
		work = make([]float64, need)
	}
	lapack64.Orgqr(a, tau, work, len(work))
}

// randomRotation returns a random orthogonal matrix of n rows.
func randomRotation(n int, rng *rand.Rand) dense.Matrix[float64] {
	q := dense.Of(n, n, make([]float64, n*n))
	for i := range q.Data {
		q.Data[i] = rng.NormFloat64()
	}
	orthonormalise(q)
	return q
}
