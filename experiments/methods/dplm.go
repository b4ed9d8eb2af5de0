package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitDPLMM is the row DPLM-M of the FDDH paper: discrete proximal linearized minimization (Shen, Zhou, Yang,
// Yang, Liu and Shen, IEEE TIP 2016) for several modalities. The objective is that of DCH; but all bits move at
// once, against the gradient D:
//
//	B = sgn(B - D / L),  D = B W W' - Y W' - mu sum_t phi_t P_t
//
// L is the least, by factors of 2, that lowers the objective. 10 steps a sweep, 5 sweeps; mu, map and
// projections of FDDH. The paper of FDDH only names this row and the next, so these two are our reading of them.
func fitDPLMM(s *run) *Model {
	s.mapped(fddhMap)
	return s.fitCodes(5, fddhMu, fddhGamma, s.classifier, proximal)
}

// fitFDDHDPLM is the row FDDH-DPLM: the orthonormal C of FDDH, but codes that are to give the labels,
//
//	|sqrt(q) Y - B C|^2 + sum_t mu |B - phi_t P_t|^2  s.t. C'C = I;  C = polar(B'Y), B as in DPLM-M.
func fitFDDHDPLM(s *run) *Model {
	s.mapped(fddhMap)
	return s.fitCodes(5, fddhMu, fddhGamma, func(b *mat.Dense) (q, a *mat.Dense, rest float64) {
		c := polar(mul(b.T(), s.Y))
		return scaled(math.Sqrt(float64(s.q)), mul(s.Y, c.T())), mul(c, c.T()), float64(s.q) * square(s.Y)
	}, proximal)
}

// proximal lowers tr(B A B') - 2 tr(B'Q) over B in {-1, 1} by ten steps of DPLM.
func proximal(b, q, a *mat.Dense) {
	of := func(b *mat.Dense) float64 { return dot(mul(b, a), b) - 2*dot(b, q) }
	last := of(b)
	for range 10 {
		gradient := minus(mul(b, a), q)
		for l := mat.Trace(a) / float64(64*b.RawMatrix().Cols); l <= 2*mat.Trace(a); l *= 2 {
			next := signs(add(mat.DenseCopyOf(b), -1/l, gradient))
			if f := of(next); f < last {
				b.Copy(next)
				last = f
				break
			}
		}
	}
}
