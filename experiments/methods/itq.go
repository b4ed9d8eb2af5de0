package methods

import "gonum.org/v1/gonum/mat"

// fitITQ is ITQ: Gong, Lazebnik, Gordo and Perronnin, "Iterative quantization: a Procrustean approach to learning
// binary codes for large-scale image retrieval", IEEE TPAMI 2013. V are the first q principal components of an
// item, turned so that they lie near their signs:
//
//	|B - V R|^2  s.t. R'R = I or R R' = I, B in {-1, 1};  B = sgn(V R),  R = polar(V'B);  50 sweeps
//
// It has one modality. Here V is of the modalities side by side, with columns of one variance, and each modality has a
// ridge regression to B (.01 n). Where there are fewer components than bits R spreads them over all bits.
func fitITQ(s *run) *Model {
	s.mapped(standard)
	all := sideBySide(s.phi)
	_, axes := eigen(mul(all.T(), all))
	v := mul(all, leading(axes, s.q))
	return s.finish(.01*float64(s.n), signs(mul(v, s.quantize(v))))
}

// fitCCAITQ is CCA-ITQ of the same paper: V are the directions in which the modalities correlate. They are the
// principal components of the whitened modalities side by side, which for two modalities is canonical
// correlation analysis: as many as the least modality has. Each modality has its projection to them, times R.
func fitCCAITQ(s *run) *Model {
	s.mapped(linear)
	white, parts, least := make([]*mat.Dense, len(s.phi)), make([]*mat.Dense, len(s.phi)), s.q
	for t, x := range s.phi {
		white[t] = whitener(x)
		parts[t], least = mul(x, white[t]), min(least, white[t].RawMatrix().Cols)
	}
	all := sideBySide(parts)
	_, axes := eigen(mul(all.T(), all))
	axes = leading(axes, least)
	r, at := s.quantize(mul(all, axes)), 0
	for t, a := range white {
		_, d := a.Dims()
		white[t] = mul(mul(a, axes.Slice(at, at+d, 0, least)), r)
		at += d
	}
	return s.projected(white, make([][]float64, len(white)))
}

// sideBySide returns the parts as one matrix.
func sideBySide(parts []*mat.Dense) *mat.Dense {
	all := parts[0]
	for _, part := range parts[1:] {
		wider := &mat.Dense{}
		wider.Augment(all, part)
		all = wider
	}
	return all
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
