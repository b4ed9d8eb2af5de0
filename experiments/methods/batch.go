package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitBATCH is BATCH (Wang, Luo, Nie, Song, Zhang and Xu, IEEE TKDE 2020). V is a latent space of modalities
// and labels:
//
//	|q G G' - B V'|^2 + omega |B - V|^2 + sum_t eta |phi_t - V U_t|^2 + eta_0 |Y - V U_0|^2
//	s.t. V'V = n I, V'1 = 0, B in {-1, 1}
//
//	U = V'phi / n,  V = sqrt(n) polar(J Z),  Z = q G (G'B) + omega B + sum eta phi_t U_t' + eta_0 Y U_0',
//	B = sgn(q G (G'V) + omega V),  J = I - 11'/n
//
// eta .05, eta_0 .9, omega .01, ridge .01, 6 sweeps; rbf with 1,000 anchors.
func fitBATCH(s *run) {
	const omega = .01
	s.mapped(rbf(1000, 2))
	n, q := float64(s.n), float64(s.q)
	latent := func(z *mat.Dense) *mat.Dense { return scaled(math.Sqrt(n), polar(centred(z, columnMeans(z)))) }
	v, b, g := latent(normal(s.r, s.n, s.q)), signs(normal(s.r, s.n, s.q)), unitRows(s.Y)
	parts, eta := append(s.phi[:len(s.phi):len(s.phi)], s.Y), map[bool]float64{true: .05, false: .9}
	for s.sweep(6) {
		z := add(scaled(q, mul(g, mul(g.T(), b))), omega, b)
		for t, x := range parts {
			add(z, eta[t < len(s.phi)]/n, mul(x, mul(x.T(), v)))
		}
		v = latent(z)
		gv := mul(g.T(), v)
		b = signs(add(scaled(q, mul(g, gv)), omega, v))
		f := q*q*square(mul(g.T(), g)) + n*n*q - 2*q*dot(mul(g.T(), b), gv) + omega*square(minus(b, v))
		for t, x := range parts { // |x - V V'x / n|^2, with the best U
			f += eta[t < len(s.phi)] * (square(x) - square(mul(v.T(), x))/n)
		}
		s.after(f)
	}
	s.finish(.01, b)
}
