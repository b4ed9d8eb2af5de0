package methods

import "gonum.org/v1/gonum/mat"

// fitFSDH is FSDH: Gui, Liu, Sun, Tao and Tan, "Fast supervised discrete hashing", IEEE TPAMI 2018. Labels are
// regressed to codes, not codes to labels as in DCH, so that the codes have a closed form:
//
//	|B - Y W|^2 + lambda |W|^2 + sum_t mu (|B - phi_t P_t|^2 + gamma |P_t|^2)  s.t. B in {-1, 1}
//
//	W = (Y'Y + lambda I)^-1 Y'B,  P_t = (phi_t'phi_t + gamma I)^-1 phi_t'B,  B = sgn(Y W + mu sum_t phi_t P_t)
//
// The paper has one modality; here each has its regression to the common codes. lambda 1, mu 1e-5, gamma 1e-3,
// 5 sweeps; the rbf map with 1,000 anchors and a column of ones.
func fitFSDH(s *run) *Model {
	s.mapped(rbf(1000, 2, false))
	return s.regressLabels(1, 1e-5, 1e-3, 5)
}

// fitSRLCH is SRLCH: Shen, Liu, Yang, Xu, Huang, Shen and Hong, "Exploiting subspace relation in semantic labels
// for cross-modal hashing", IEEE TKDE 2020. Its objective and steps are those of FSDH over all modalities, with
// other weights: lambda .1, mu 1e-3, gamma .01, 10 sweeps; the rbf map with 500 anchors and a column of ones. The
// authors give each modality of each set a mu of its own, from 1e-5 to .1.
func fitSRLCH(s *run) *Model {
	s.mapped(rbf(500, 2, false))
	return s.regressLabels(.1, 1e-3, .01, 10)
}

// fitFSDHM is the row FSDH-M of the FDDH paper: the codes of FSDH with the map and the projections of FDDH.
func fitFSDHM(s *run) *Model {
	s.mapped(fddhMap)
	return s.regressLabels(1, fddhMu, fddhGamma, 3)
}

// regressLabels alternates the steps of FSDH.
func (s *run) regressLabels(lambda, mu, gamma float64, sweeps int) *Model {
	labels, regress, b := ridge(s.Y, lambda), s.regressions(gamma), signs(normal(s.r, s.n, s.q))
	for s.sweep(sweeps) {
		w := labels(b)
		f, yw, fits := lambda*square(w), mul(s.Y, w), make([]*mat.Dense, len(s.phi))
		sum := mat.DenseCopyOf(yw)
		for t, phi := range s.phi {
			p := regress[t](b)
			fits[t] = mul(phi, p)
			add(sum, mu, fits[t])
			f += mu * gamma * square(p)
		}
		b = signs(sum)
		f += square(minus(b, yw))
		for _, fit := range fits {
			f += mu * square(minus(b, fit))
		}
		s.after(f)
	}
	return s.finish(gamma, b)
}
