package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitSCM is SCM, sequential (Zhang and Li, AAAI 2014). Inner products of codes are the similarity of labels:
//
//	|q S - sgn(X_1 W_1) sgn(X_2 W_2)'|^2,  S = 2 G G' - 1
//
// Bit k is the leading pair of vectors of C = X_1'(q S - sum of the bits before k) X_2 under w_t'X_t'X_t w_t
// = n. S is never formed, as G has c columns. Centred vectors.
func fitSCM(s *run) {
	s.mapped(linear)
	g := unitRows(s.Y)
	// Centred vectors are orthogonal to the 1 of S.
	c := scaled(2*float64(s.q), mul(mul(s.phi[0].T(), g), mul(g.T(), s.phi[1])))
	white, w, seen := make([]*mat.Dense, 2), make([]*mat.Dense, 2), make([]*mat.Dense, 2)
	for t, x := range s.phi {
		white[t], w[t] = whitener(x), mat.NewDense(x.RawMatrix().Cols, s.q, nil)
	}
	for k := range s.q {
		u, v := singular(mul(mul(white[0].T(), c), white[1]))
		for t, side := range []*mat.Dense{u, v} {
			p := mul(white[t], side.ColView(0))
			w[t].SetCol(k, p.RawMatrix().Data)
			seen[t] = mul(s.phi[t].T(), signs(mul(s.phi[t], p)))
		}
		add(c, -1, mul(seen[0], seen[1].T()))
	}
	s.learned(nil, w[0], nil)
	s.learned(nil, w[1], nil)
}

// whitener returns A for which (X A)'(X A) = n I, but for directions in which X hardly varies, which it
// leaves out.
func whitener(x *mat.Dense) *mat.Dense {
	values, vectors := eigen(scaled(1/float64(x.RawMatrix().Rows), mul(x.T(), x)))
	kept := 1
	for kept < len(values) && values[kept] > 1e-6*values[0] {
		kept++
	}
	vectors.Apply(func(_, k int, v float64) float64 { return v / math.Sqrt(max(values[k], 1e-300)) }, vectors)
	return leading(vectors, kept)
}
