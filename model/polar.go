package model

import (
	"errors"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// rankTolerance is the share of the largest singular value below which one counts as
// zero.
const rankTolerance = 1e-10

// polar writes to dst the polar factor U V' of the thin SVD M = U S V', where m is M,
// row-major, rows x cols, with rows <= cols.
//
// Among all X with orthonormal rows the polar factor maximises tr(X M'). That is the
// step of every solver: since |X'B| = |B|, min |A - X'B|^2 over such X is max tr(X A
// B') (the orthogonal Procrustes problem). If a singular value is 0 any choice of its
// singular vectors gives the same maximum. With truncate, directions without a singular
// value are left out: the result is the canonical partial isometry, which does not
// depend on the SVD routine.
//
// dst and m may be the same slice.
func polar(dst, m []float64, rows, cols int, truncate bool) error {
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(rows, cols, m), mat.SVDThin) {
		return errors.New("the singular value decomposition did not converge")
	}
	rank := rows
	if truncate {
		s := svd.Values(nil)
		rank = 0
		for rank < len(s) && s[rank] > rankTolerance*s[0] {
			rank++
		}
	}
	clear(dst)
	if rank == 0 {
		return nil
	}
	var u, v mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	ur, vr := u.RawMatrix(), v.RawMatrix()
	ur.Cols, vr.Cols = rank, rank
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, ur, vr, 0, general(dst, rows, cols))
	return nil
}

// general returns data, without gaps, as a row-major matrix.
func general(data []float64, rows, cols int) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}
