package methods

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// fitCCQ is CCQ (Long, Cao, Wang and Yu, SIGIR 2016). R_t maps a modality to a space of D dimensions, where
// an item is a sum of words, one of each codebook:
//
//	sum_t |X_t - B C R_t'|^2  s.t. R_t'R_t = I
//
// The paper has codebooks of 256 words and ranks by the distance to the sum. Here each of q codebooks has two
// opposite words, so that B is +-1 and ranks by Hamming distance, as all codes of these tables do:
//
//	R_t = polar(X_t'B C),  C by regression of the mean of X_t R_t on B,  B by cyclic coordinate descent
//
// D is the least dimension of a modality, at most q; 30 sweeps; columns of variance 1/d. Other items are
// coded by the same descent from the mean of x R_t, begun at sgn(x R_t C').
func fitCCQ(s *run) {
	s.mapped(standard)
	d, share := s.q, 1/float64(len(s.phi))
	for _, x := range s.phi {
		d = min(d, x.RawMatrix().Cols)
	}
	// The first modality begins at its principal axes, the others where they are nearest to it.
	_, axes := eigen(mul(s.phi[0].T(), s.phi[0]))
	start, z := mul(s.phi[0], leading(axes, d)), mat.NewDense(s.n, d, nil)
	rotations := make([]*mat.Dense, len(s.phi))
	for t, x := range s.phi {
		rotations[t] = polar(mul(x.T(), start))
		add(z, share, mul(x, rotations[t]))
	}
	c := scaled(math.Sqrt(square(z)/float64(s.n*d)), polar(normal(s.r, s.q, d)))
	s.Encode = func(start *mat.Dense) *mat.Dense {
		b := signs(start)
		cyclic(b, start, mul(c, c.T()))
		return b
	}
	b := s.Encode(mul(z, c.T()))
	for s.sweep(30) {
		c = ridge(b, 1e-6)(z)
		f, bc := 0., mul(b, c)
		z = mat.NewDense(s.n, d, nil)
		for t, x := range s.phi {
			rotations[t] = polar(mul(x.T(), bc))
			f += square(minus(x, mul(bc, rotations[t].T())))
			add(z, share, mul(x, rotations[t]))
		}
		cyclic(b, mul(z, c.T()), mul(c, c.T()))
		s.after(f)
	}
	s.Fuse = func(z []*mat.Dense) *mat.Dense { return scaled(share, sum(z)) }
	b = s.Encode(mul(z, c.T()))
	for t := range s.phi {
		s.learned(b, mul(rotations[t], c.T()), nil)
	}
}

// standard returns the map x - mean, with columns of variance 1/d.
func standard(x *mat.Dense, r *rand.Rand) mapping {
	centre := linear(x, r)
	deviations := columnMeans(apply(centre(x), func(v float64) float64 { return v * v }))
	return func(x *mat.Dense) *mat.Dense {
		m := centre(x)
		m.Apply(func(_, j int, v float64) float64 {
			return v / math.Sqrt(max(float64(len(deviations))*deviations[j], 1e-300))
		}, m)
		return m
	}
}
