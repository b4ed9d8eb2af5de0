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
