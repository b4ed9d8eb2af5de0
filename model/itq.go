package model

import (
	"context"
	"math/rand/v2"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// itqSteps is the number of alternations, as in the paper.
const itqSteps = 50

// itq returns the rotation R, q x q, that brings the rows of V R near their signs: it minimises
// |B - V R|^2 over B in {-1,1} and orthogonal R, by turns (Gong and Lazebnik 2011, section 2.2). For
// given R, B has the signs of V R; for given B, R = U W' of the SVD V'B = U S W', which polar is. It
// starts at a random rotation. A step costs 2 n q^2 multiplications and a decomposition of q rows.
func itq(ctx context.Context, v dense.Matrix[float32], rng *rand.Rand) (dense.Matrix[float64], error) {
	n, q, workers := v.Rows, v.Cols, workerCount()
	r := randomRotation(q, rng)
	z := dense.Of(rowsAtATime, q, make([]float64, rowsAtATime*q))
	b := dense.Of(rowsAtATime, q, make([]float32, rowsAtATime*q))
	for range itqSteps {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		m, right := dense.Of(q, q, make([]float64, q*q)), dense.PackTransposed(r)
		for first := 0; first < n; first += rowsAtATime {
			rows := min(rowsAtATime, n-first)
			chunks(workers, rows, mapRows, func(_, from, to int) {
				dense.MulNT(z.Slice(from, to), v.Slice(first+from, first+to), right)
				for i := from * q; i < to*q; i++ {
					b.Data[i] = 1
					if z.Data[i] < 0 {
						b.Data[i] = -1
					}
				}
			})
			dense.AddTN(m, v.Slice(first, first+rows), b.Slice(0, rows), workers)
		}
		if err := polar(r.Data, m.Data, q, q, false); err != nil {
			return r, err
		}
	}
	return r, nil
}

// turned returns R'A: the rows of A, turned by R.
func turned(r, a dense.Matrix[float64]) dense.Matrix[float64] {
	w := dense.Of(r.Cols, a.Cols, make([]float64, r.Cols*a.Cols))
	dense.AddTN(w, r, a, workerCount())
	return w
}

// projected returns the products of the rows of x and those of a, at float32.
func projected(x dense.Matrix[float32], a dense.Matrix[float64]) dense.Matrix[float32] {
	v, right := dense.Of(x.Rows, a.Rows, make([]float32, x.Rows*a.Rows)), dense.Pack(a)
	workers := workerCount()
	scratch := make([][]float64, workers)
	chunks(workers, x.Rows, mapRows, func(worker, from, to int) {
		if scratch[worker] == nil {
			scratch[worker] = make([]float64, mapRows*a.Rows)
		}
		z := dense.Of(to-from, a.Rows, scratch[worker])
		dense.MulNT(z, x.Slice(from, to), right)
		for i, s := range z.Data[:(to-from)*a.Rows] {
			v.Data[from*a.Rows+i] = float32(s)
		}
	})
	return v
}
