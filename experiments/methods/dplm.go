package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitDPLMM is the row DPLM-M of the FDDH paper: discrete proximal linearized minimization (Shen, Zhou, Yang,
// Yang, Liu and Shen, "A fast optimization method for general binary code learning", IEEE TIP 2016) for several
// modalities. The objective is that of DCH; but all bits move at once, against the gradient D:
//
//	B = sgn(B - D / L),  D = B W W' - Y W' - mu sum_t phi_t P_t
//
// L is the least, by factors of 2, that lowers the objective. 10 steps a sweep, 5 sweeps; mu, map and
// projections of FDDH. The paper of FDDH only names this row and the next, so these two are our reading of them.
func fitDPLMM(s *run) *Model {
	s.mapped(fddhMap)
	return s.classify(fddhMu, fddhGamma, func(b *mat.Dense) (w, y *mat.Dense, penalty float64) {
		w = ridge(b, 1)(s.Y)
		return w, s.Y, square(w)
	}, proximal)
}

// fitFDDHDPLM is the row FDDH-DPLM: the orthonormal C of FDDH, but codes that are to give the labels,
//
//	|sqrt(q) Y - B C|^2 + sum_t mu |B - phi_t P_t|^2  s.t. C'C = I;  C = polar(B'Y), B as in DPLM-M.
func fitFDDHDPLM(s *run) *Model {
	s.mapped(fddhMap)
	return s.classify(fddhMu, fddhGamma, func(b *mat.Dense) (w, y *mat.Dense, penalty float64) {
		return polar(mul(b.T(), s.Y)), scaled(math.Sqrt(float64(s.q)), s.Y), 0
	}, proximal)
}

// proximal lowers tr(B A B') - 2 tr(B'Q) over B in {-1, 1} by ten steps of DPLM. |B|^2 is constant, so that the
// multiple of I is left out of A: it would only keep B where it is.
func proximal(b, q, a *mat.Dense) {
	of := func(b *mat.Dense) float64 { return dot(mul(b, a), b) - 2*dot(b, q) }
	last, least := of(b), mat.Trace(a)/float64(64*b.RawMatrix().Cols)
	for range 10 {
		gradient := minus(mul(b, a), q)
		for l := least; l <= 2*mat.Trace(a); l *= 2 {
			next := signs(add(mat.DenseCopyOf(b), -1/l, gradient))
			if f := of(next); f < last {
				b.Copy(next)
				last = f
				break
			}
		}
	}
}
