package methods

import "gonum.org/v1/gonum/mat"

// fitITQ is ITQ (Gong, Lazebnik, Gordo and Perronnin, IEEE TPAMI 2013). V are principal components, turned:
//
//	|B - V R|^2  s.t. R'R = I or R R' = I, B in {-1, 1};  B = sgn(V R),  R = polar(V'B);  50 sweeps
//
// It has one modality. Here V is of the modalities side by side, centred, and each has a ridge regression to
// B (.01 n). Where there are fewer components than bits R spreads them over all bits.
func fitITQ(s *run) {
	s.mapped(linear)
	v := mul(axes(s.phi, s.q))
	s.finish(.01*float64(s.n), signs(mul(v, s.quantize(v))))
}

// fitCCAITQ is CCA-ITQ of the same paper: V are the directions in which the modalities correlate, the
// principal components of the whitened modalities side by side: as many as the least modality has.
func fitCCAITQ(s *run) {
	s.mapped(linear)
	white, parts, least := make([]*mat.Dense, len(s.phi)), make([]*mat.Dense, len(s.phi)), s.q
	for t, x := range s.phi {
		white[t] = whitener(x)
		parts[t], least = mul(x, white[t]), min(least, white[t].RawMatrix().Cols)
	}
	all, turn := axes(parts, least)
	r, at := s.quantize(mul(all, turn)), 0
	for _, a := range white {
		_, d := a.Dims()
		s.learned(nil, mul(mul(a, turn.Slice(at, at+d, 0, least)), r), nil)
		at += d
	}
}

// axes returns the parts side by side, and their leading k principal axes.
func axes(parts []*mat.Dense, k int) (all, axes *mat.Dense) {
	for all = parts[0]; len(parts) > 1; parts = parts[1:] {
		wider := &mat.Dense{}
		wider.Augment(all, parts[1])
		all = wider
	}
	_, axes = eigen(mul(all.T(), all))
	return all, leading(axes, k)
}

// quantize alternates the two steps of ITQ and returns R.
func (s *run) quantize(v *mat.Dense) *mat.Dense {
	r := polar(normal(s.r, v.RawMatrix().Cols, s.q))
	for s.sweep(50) {
		b := signs(mul(v, r))
		r = polar(mul(v.T(), b))
		s.after(square(minus(b, mul(v, r))))
	}
	return r
}

// fitCCQ is CCQ (Long, Cao, Wang and Yu, SIGIR 2016). R_t maps a modality to D dimensions, where an item is
// a sum of words, one a codebook:
//
//	sum_t |X_t - B C R_t'|^2  s.t. R_t'R_t = I
//	R_t = polar(X_t'B C),  C by regression of the mean of X_t R_t on B,  B by cyclic coordinate descent
//
// The paper has codebooks of 256 words and ranks by the distance to the sum. Here each of q codebooks has
// two opposite words, so that B ranks by Hamming distance. D is the least dimension of a modality, at most q.
// 30 sweeps. Other items are coded by the same descent, which starts at sgn(x R_t C').
func fitCCQ(s *run) {
	s.mapped(linear)
	d, modalities, rotations := s.q, float64(len(s.phi)), make([]*mat.Dense, len(s.phi))
	for _, x := range s.phi {
		d = min(d, x.RawMatrix().Cols)
	}
	z := mul(axes(s.phi, d))
	var c *mat.Dense
	s.Encode = func(z *mat.Dense) *mat.Dense {
		start := mul(z, c.T())
		b := signs(start)
		cyclic(b, start, mul(c, c.T()))
		return b
	}
	b := signs(mul(z, polar(normal(s.r, d, s.q))))
	for s.sweep(30) {
		c = ridge(b, 1e-6)(z)
		cyclic(b, mul(z, c.T()), mul(c, c.T()))
		f, bc := 0., mul(b, c)
		z = scaled(0, z)
		for t, x := range s.phi {
			rotations[t] = polar(mul(x.T(), bc))
			f += square(minus(x, mul(bc, rotations[t].T())))
			add(z, 1/modalities, mul(x, rotations[t]))
		}
		s.after(f)
	}
	s.Fuse = func(z []*mat.Dense) *mat.Dense { return scaled(1/modalities, sum(z)) }
	for t := range s.phi {
		s.learned(s.Encode(z), rotations[t], nil)
	}
}
