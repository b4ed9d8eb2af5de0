package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

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

// fitCCQ is CCQ: Long, Cao, Wang and Yu, "Composite correlation quantization for efficient multimodal retrieval",
// SIGIR 2016. R_t maps a modality to a space of D dimensions, where an item is a sum of words, one a codebook:
//
//	sum_t |X_t - B C R_t'|^2  s.t. R_t'R_t = I
//
// The paper has codebooks of 256 words and ranks by the distance to the sum. Here each of q codebooks has two
// opposite words, so that B is +-1 and ranks by Hamming distance as all codes of these tables do:
//
//	R_t = polar(X_t'B C),  C by regression of the mean of X_t R_t on B,  B by cyclic coordinate descent
//
// D is the least dimension of a modality, at most q; 30 sweeps; columns of one variance. Other items
// are coded by the same descent from the mean of x R_t, which starts at sgn(x R_t C').
func fitCCQ(s *run) *Model {
	s.mapped(standard)
	d, modalities := s.q, float64(len(s.phi))
	for _, x := range s.phi {
		d = min(d, x.RawMatrix().Cols)
	}
	// The first modality starts at its principal axes, the others where they are nearest to it.
	_, axes := eigen(mul(s.phi[0].T(), s.phi[0]))
	start, z := mul(s.phi[0], leading(axes, d)), mat.NewDense(s.n, d, nil)
	rotations := make([]*mat.Dense, len(s.phi))
	for t, x := range s.phi {
		rotations[t] = polar(mul(x.T(), start))
		add(z, 1/modalities, mul(x, rotations[t]))
	}
	c := scaled(math.Sqrt(square(z)/float64(s.n*d)), polar(normal(s.r, s.q, d)))
	code := func(z *mat.Dense) *mat.Dense {
		start := mul(z, c.T())
		b := signs(start)
		cyclic(b, start, mul(c, c.T()))
		return b
	}
	b := code(z)
	for s.sweep(30) {
		c = ridge(b, 1e-6)(z)
		f, bc := 0., mul(b, c)
		z = mat.NewDense(s.n, d, nil)
		for t, x := range s.phi {
			rotations[t] = polar(mul(x.T(), bc))
			f += square(minus(x, mul(bc, rotations[t].T())))
			add(z, 1/modalities, mul(x, rotations[t]))
		}
		cyclic(b, mul(z, c.T()), mul(c, c.T()))
		s.after(f)
	}
	m := &Model{Encode: code, Fuse: func(z []*mat.Dense) *mat.Dense { return scaled(1/modalities, sum(z)) }}
	for t := range s.phi {
		m.Codes, m.Project = append(m.Codes, code(z)), append(m.Project, s.project(t, rotations[t], nil))
	}
	return m
}
