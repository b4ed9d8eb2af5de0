package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitDCMH is DCMH: Jiang and Li, CVPR 2017. Two networks F and G are to tell by their inner products which items
// share a label (s = 1):
//
//	-sum_ij (s_ij theta_ij - log(1 + exp(theta_ij))) + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2)
//	theta = F G' / 2,  B = sgn(F + G)
//
// The authors' networks take pixels and words. Here each is a perceptron over the given features: 500 rbf units,
// less their mean, and a layer of weights that learns. gamma 1; batches of 128, 20 epochs of gradient descent
// with momentum .9 and a falling step, which (phi'phi + I)^-1 scales. F'1 is estimated from the batch, and eta is
// .05, as larger ones let training diverge. S, of all pairs, is held as in the authors' program.
func fitDCMH(s *run) *Model {
	const epochs, gamma, eta = 20, 1, .05
	s.mapped(rbf(500, 2, true))
	var w, speed, out [2]*mat.Dense
	var solve [2]func(mat.Matrix) *mat.Dense
	share := mul(s.Y, s.Y.T())
	for t, phi := range s.phi {
		w[t] = scaled(.01, normal(s.r, phi.RawMatrix().Cols, s.q))
		solve[t] = solver(mul(phi.T(), phi), 1)
		speed[t], out[t] = scaled(0, w[t]), mul(phi, w[t])
	}
	b := signs(sum(out[:]))
	for s.sweep(epochs) {
		rate := .5 * float64(s.n) * (1 - float64(s.done-1)/float64(max(epochs, s.Sweeps)))
		for t, phi := range s.phi {
			order := s.r.Perm(s.n)
			for from := 0; from < s.n; from += 128 {
				batch := order[from:min(from+128, s.n)]
				x := rowsOf(phi, batch)
				f := mul(x, w[t])
				means, theta := columnMeans(f), mul(f, out[1-t].T())
				for a, i := range batch {
					row := theta.RawRowView(a)
					for j, similar := range share.RawRowView(i) {
						row[j] = 1/(1+math.Exp(-row[j]/2)) - min(similar, 1)
					}
				}
				gradient := add(scaled(.5, mul(theta, out[1-t])), 2*gamma, minus(f, rowsOf(b, batch)))
				gradient.Apply(func(_, k int, v float64) float64 {
					return (v + 2*eta*float64(s.n)*means[k]) / float64(len(batch)*s.n)
				}, gradient)
				speed[t] = add(scaled(.9, speed[t]), 1, mul(x.T(), gradient))
				add(w[t], -rate, solve[t](speed[t]))
			}
			out[t] = mul(phi, w[t])
		}
		b = signs(sum(out[:]))
	}
	m := &Model{Codes: []*mat.Dense{b, b}}
	for t := range w {
		m.Project = append(m.Project, s.project(t, w[t], nil))
	}
	return m
}
