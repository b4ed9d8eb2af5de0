package methods

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fitDLFH is DLFH: Jiang and Li, "Discrete latent factor model for cross-modal hashing", IEEE TIP 2019. Each of
// two modalities has codes, U and V. Their inner products are to tell whether two items share a label (s = 1):
//
//	max sum_ij s_ij theta_ij - log(1 + exp(theta_ij)),  theta = lambda U V' / q,  U, V in {-1, 1}
//
// Bit k of U maximises a lower bound of it, over a random sample of m items a sweep; V likewise:
//
//	u_k = sgn(lambda/q (S - sigmoid(theta)) v_k + m lambda^2 / (4 q^2) u_k)
//
// The sample makes it linear in n, and so the objective need not fall. lambda 8, m = q, 30 sweeps; the rbf map
// with 500 anchors. The authors project by kernel logistic regression; here it is ridge regression, .01.
func fitDLFH(s *run) *Model {
	s.mapped(rbf(500, 2, true))
	codes := []*mat.Dense{signs(normal(s.r, s.n, s.q)), signs(normal(s.r, s.n, s.q))}
	for s.sweep(30) {
		sample := s.r.Perm(s.n)[:min(s.q, s.n)]
		for t := range codes {
			s.latentFactors(codes[t], rowsOf(codes[1-t], sample), rowsOf(s.Y, sample))
		}
	}
	return s.finish(.01, codes...)
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
