package methods

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fitDLFH is DLFH (Jiang and Li, IEEE TIP 2019). Inner products of the codes U and V of two modalities tell
// whether two items share a label (s = 1):
//
//	max sum_ij s_ij theta_ij - log(1 + exp(theta_ij)),  theta = lambda U V' / q,  U, V in {-1, 1}
//
// Bit k of U maximises a lower bound of it, over a random sample of m items a sweep; V likewise:
//
//	u_k = sgn(lambda/q (S - sigmoid(theta)) v_k + m lambda^2 / (4 q^2) u_k)
//
// lambda 8, m = q, 30 sweeps; rbf with 500 anchors, and ridge regression (.01) for the authors' kernel
// logistic one.
func fitDLFH(s *run) {
	s.mapped(rbf(500, 2))
	codes := []*mat.Dense{signs(normal(s.r, s.n, s.q)), signs(normal(s.r, s.n, s.q))}
	for s.sweep(30) {
		sample := s.r.Perm(s.n)[:min(s.q, s.n)]
		for t := range codes {
			s.latentFactors(codes[t], rowsOf(codes[1-t], sample), rowsOf(s.Y, sample))
		}
	}
	s.finish(.01, codes...)
}

// latentFactors updates u, all bits in turn, by the sampled rows v and their labels.
func (s *run) latentFactors(u, v, labels *mat.Dense) {
	scale, m := 8/float64(s.q), float64(v.RawMatrix().Rows)
	bits, share := mat.DenseCopyOf(v.T()), mul(s.Y, labels.T())
	all := scaled(scale, mul(u, bits))
	for i := range s.n {
		row, theta, shared := u.RawRowView(i), all.RawRowView(i), share.RawRowView(i)
		for k, old := range row {
			p, v := m*scale*scale/4*old, bits.RawRowView(k)
			for a, x := range theta {
				p += scale * (min(shared[a], 1) - 1/(1+math.Exp(-x))) * v[a]
			}
			if row[k] = 1; p < 0 {
				row[k] = -1
			}
			floats.AddScaled(theta, scale*(row[k]-old), v)
		}
	}
}

// fitDCMH is DCMH (Jiang and Li, CVPR 2017). Inner products of two networks F and G tell which items share a
// label:
//
//	-sum_ij (s_ij theta_ij - log(1 + exp(theta_ij))) + gamma (|B - F|^2 + |B - G|^2) + eta (|F'1|^2 + |G'1|^2)
//	theta = F G' / 2,  B = sgn(F + G)
//
// The authors' networks take pixels and words. Here each is a perceptron over the given features: 500 rbf
// units and a layer of weights that learns, by batches of 128 over 20 epochs of gradient descent with
// momentum .9 and a falling step, which (phi'phi + I)^-1 scales. gamma 1. F'1 is estimated from the batch,
// and eta is .05, as larger ones diverge. S, of all pairs, is held as in the authors' program.
func fitDCMH(s *run) {
	const epochs, gamma, eta = 20, 1, .05
	s.mapped(rbf(500, 2))
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
	s.learned(b, w[0], nil)
	s.learned(b, w[1], nil)
}
