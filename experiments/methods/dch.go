package methods

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fitDCH is DCH (Xu, Shen, Yang, Shen and Li, IEEE TIP 2017). Codes classify, and lie near the projections:
//
//	|Y - B W|^2 + lambda |W|^2 + sum_t mu (|B - X_t P_t|^2 + gamma |P_t|^2)  s.t. B in {-1, 1}
//
//	P_t, W by ridge regressions;  each bit k in turn (discrete cyclic coordinate descent):
//	b_k = sgn(q_k - B_-k W_-k w_k'),  Q = Y W' + mu sum_t X_t P_t
//
// lambda 1, mu 1e-5, gamma .01, 5 sweeps; centred vectors. (With rbf it reaches .39 / .76 on wiki.)
func fitDCH(s *run) {
	s.mapped(linear)
	s.fitCodes(5, 1e-5, .01, s.classifier, cyclic)
}

// fitCodes alternates the regressions P_t and steps of the codes of an objective
//
//	tr(B A B') - 2 tr(B'Q) + rest + sum_t mu (|B - phi_t P_t|^2 + gamma |P_t|^2).
//
// of returns Q, A and rest for codes; step lowers tr(B A B') - 2 tr(B'Q) over B.
func (s *run) fitCodes(sweeps int, mu, gamma float64,
	of func(b *mat.Dense) (q, a *mat.Dense, rest float64), step func(b, q, a *mat.Dense)) {
	regress, b := s.regressions(gamma), signs(normal(s.r, s.n, s.q))
	for s.sweep(sweeps) {
		q, a, f := of(b)
		for t, phi := range s.phi {
			p := regress[t](b)
			fit := mul(phi, p)
			add(q, mu, fit)
			f += mu * (square(fit) + gamma*square(p) + float64(s.n*s.q))
		}
		step(b, q, a)
		s.after(f + dot(mul(b, a), b) - 2*dot(b, q))
	}
	s.finish(gamma, b)
}

// classifier returns |Y - B W|^2 + |W|^2, with the best W, for fitCodes.
func (s *run) classifier(b *mat.Dense) (q, a *mat.Dense, rest float64) {
	w := ridge(b, 1)(s.Y)
	return mul(s.Y, w.T()), mul(w, w.T()), square(s.Y) + square(w)
}

// cyclic lowers tr(B A B') - 2 tr(B'Q) over B in {-1, 1}, a bit at a time, until none changes or for 10
// rounds. A is symmetric.
func cyclic(b, q, a *mat.Dense) {
	for i := range b.RawMatrix().Rows {
		row, want := b.RawRowView(i), q.RawRowView(i)
		for round, changed := 0, true; changed && round < 10; round++ {
			changed = false
			for k, old := range row {
				weights := a.RawRowView(k)
				v := want[k] - floats.Dot(row, weights) + old*weights[k]
				if row[k] = -1; v > 0 || v == 0 && old > 0 {
					row[k] = 1
				}
				changed = changed || row[k] != old
			}
		}
	}
}

// fitDPLMM is the row DPLM-M of the FDDH paper: the objective of DCH by discrete proximal linearized
// minimization (Shen, Zhou, Yang, Song, Shen and Tao, IEEE TIP 2016), where all bits move at once, against
// the gradient D:
//
//	B = sgn(B - D / L),  D = B W W' - Y W' - mu sum_t phi_t P_t
//
// L is the least, by factors of 2, that lowers the objective. 10 steps a sweep, 5 sweeps; mu, map and
// projections of FDDH. The paper only names this row and the next, so these two are our reading of them.
func fitDPLMM(s *run) {
	s.mapped(fddhMap)
	s.fitCodes(5, fddhMu, fddhGamma, s.classifier, proximal)
}

// fitFDDHDPLM is the row FDDH-DPLM: the orthonormal C of FDDH, but codes that are to give the labels,
//
//	|sqrt(q) Y - B C|^2 + sum_t mu |B - phi_t P_t|^2  s.t. C'C = I;  C = polar(B'Y), B as in DPLM-M.
func fitFDDHDPLM(s *run) {
	s.mapped(fddhMap)
	s.fitCodes(5, fddhMu, fddhGamma, func(b *mat.Dense) (q, a *mat.Dense, rest float64) {
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
		for l := mat.Trace(a) / float64(64*b.RawMatrix().Cols); l > 0 && l <= 2*mat.Trace(a); l *= 2 {
			next := signs(add(mat.DenseCopyOf(b), -1/l, gradient))
			if f := of(next); f < last {
				b.Copy(next)
				last = f
				break
			}
		}
	}
}
