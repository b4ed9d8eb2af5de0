package methods

import "gonum.org/v1/gonum/mat"

// fitFSDH is FSDH (Gui, Liu, Sun, Tao and Tan, IEEE TPAMI 2018). Labels are regressed to codes, not codes to
// labels as in DCH, so that the codes have a closed form. The paper has one modality; here each has its
// regression:
//
//	|B - Y W|^2 + lambda |W|^2 + sum_t mu (|B - phi_t P_t|^2 + gamma |P_t|^2)  s.t. B in {-1, 1}
//
//	W = (Y'Y + lambda I)^-1 Y'B,  P_t = (phi_t'phi_t + gamma I)^-1 phi_t'B,  B = sgn(Y W + mu sum_t phi_t P_t)
//
// lambda 1, mu 1e-5, gamma 1e-3, 5 sweeps; rbf with 1,000 anchors.
func fitFSDH(s *run) {
	s.mapped(rbf(1000, 2))
	s.regressLabels(1, 1e-5, 1e-3, 5)
}

// fitSRLCH is SRLCH (Shen, Liu, Yang, Xu, Huang, Shen and Hong, IEEE TKDE 2020). It has the objective and the
// steps of FSDH: lambda .1, mu 1e-3 (the authors: 1e-5 to .1 by set), gamma .01, 10 sweeps; rbf with 500
// anchors.
func fitSRLCH(s *run) {
	s.mapped(rbf(500, 2))
	s.regressLabels(.1, 1e-3, .01, 10)
}

// fitFSDHM is the row FSDH-M of the FDDH paper: the codes of FSDH with the map and the projections of FDDH.
func fitFSDHM(s *run) {
	s.mapped(fddhMap)
	s.regressLabels(1, fddhMu, fddhGamma, 3)
}

// regressLabels alternates the steps of FSDH. Q is Y W, and A is 0, as |B|^2 is constant.
func (s *run) regressLabels(lambda, mu, gamma float64, sweeps int) {
	regress, none := ridge(s.Y, lambda), mat.NewDense(s.q, s.q, nil)
	s.fitCodes(sweeps, mu, gamma, func(b *mat.Dense) (q, a *mat.Dense, rest float64) {
		w := regress(b)
		yw := mul(s.Y, w)
		return yw, none, float64(s.n*s.q) + square(yw) + lambda*square(w)
	}, func(b, q, _ *mat.Dense) { b.Copy(signs(q)) })
}
