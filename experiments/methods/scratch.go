package methods

// fitSCRATCH is SCRATCH: Li, Chen, Zhang, Luo, Nie, Zhang and Xu, "SCRATCH: A scalable discrete matrix
// factorization hashing for cross-modal retrieval", ACM Multimedia 2018. V is a latent space of modalities and
// labels, as in CMFH, and the codes are V turned by R:
//
//	sum_t (lambda |phi_t - V U_t|^2 + mu |V - phi_t P_t|^2) + alpha |Y - V G|^2 + |B - V R|^2
//	+ gamma (|U|^2 + |P|^2 + |G|^2 + |V|^2)  s.t. R'R = I, B in {-1, 1}
//
//	B = sgn(V R);  U, G, P, V by ridge regressions;  R = polar(V'B);  z = phi_t P_t R
//
// lambda 1/T, alpha 500, mu 1,000, gamma 5, 20 sweeps; the rbf map with 500 anchors, less its mean.
func fitSCRATCH(s *run) *Model {
	s.mapped(rbf(500, 2, true))
	_, p, r, b := s.factorize(20, 1000, 5, 500)
	m := s.finish(5/1000., b)
	for t := range p {
		if !s.Target {
			m.Project[t] = s.project(t, mul(p[t], r), nil)
		}
	}
	return m
}
