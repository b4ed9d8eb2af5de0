package methods

// fitGSePH is GSePH: Mandal, Chaudhury and Biswas, "Generalized semantic preserving hashing for n-label
// cross-modal retrieval", CVPR 2017. Inner products of two sets of codes are the similarities of labels:
//
//	|q S - B_1 B_2'|^2  s.t. B_1, B_2 in {-1, 1};  S = G G'
//
// Each set moves bit by bit while the other stays (cyclic coordinate descent); S is never formed, as G has c
// columns. Paired items get one code in the end, sgn(B_1 + B_2). 10 sweeps. The authors project by kernel
// logistic regression; here it is ridge regression, .01, on the same features, the rbf map with 500 anchors.
func fitGSePH(s *run) *Model {
	s.mapped(rbf(500, 2, true))
	g, q := unitRows(s.Y), float64(s.q)
	a, b := signs(normal(s.r, s.n, s.q)), signs(normal(s.r, s.n, s.q))
	for s.sweep(10) {
		cyclic(a, scaled(q, mul(g, mul(g.T(), b))), mul(b.T(), b))
		cyclic(b, scaled(q, mul(g, mul(g.T(), a))), mul(a.T(), a))
		s.after(q*q*square(mul(g.T(), g)) - 2*q*dot(mul(g.T(), a), mul(g.T(), b)) +
			dot(mul(a.T(), a), mul(b.T(), b)))
	}
	return s.finish(.01, signs(add(a, 1, b)))
}
