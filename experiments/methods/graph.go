package methods

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fitIMH is IMH (Song, Yang, Yang, Huang and Shen, SIGMOD 2013). Neighbours within a modality are to have
// like codes, and so are the modalities of an item. Items here have all modalities, so that these share F:
//
//	sum_t tr(F'L_t F) + |F - X_t W_t|^2 + rho |W_t|^2  s.t. F'F = I
//
//	F: the last eigenvectors of sum_t L_t + I - X_t (X_t'X_t + rho I)^-1 X_t',
//	W_t = (X_t'X_t + rho I)^-1 X_t'F,  z = x W_t - median,  B_t = sgn(z)
//
// L_t is the normalised Laplacian of the 10 nearest neighbours, which come from all pairs. rho is a
// thousandth of the mean eigenvalue of X_t'X_t; centred vectors. 60 rounds of orthogonal iteration give the
// eigenvectors.
func fitIMH(s *run) {
	s.mapped(linear)
	var near []*mat.Dense // by modality: the neighbours of each row, and the weight of each
	var regress []func(*mat.Dense) *mat.Dense
	for _, x := range s.phi {
		near = append(near, neighbours(x, min(10, s.n-1)))
		regress = append(regress, ridge(x, 1e-3*square(x)/float64(x.RawMatrix().Cols)))
	}
	// The last eigenvectors of I - A + I - P are the first of A + P, which 2 I makes positive definite.
	times := func(f *mat.Dense) *mat.Dense {
		total := scaled(2*float64(len(s.phi)), f)
		for t, x := range s.phi {
			add(add(total, 1, mul(near[t], f)), 1, mul(x, regress[t](f)))
		}
		return total
	}
	f := polar(normal(s.r, s.n, min(s.q, s.n)))
	for s.sweep(60) {
		f = polar(times(f))
	}
	if s.n < s.q {
		f = mul(f, polar(normal(s.r, s.n, s.q)))
	}
	for t, x := range s.phi {
		w := regress[t](f)
		z, medians := mul(x, w), make([]float64, s.q)
		for k := range medians { // ridge regressions shrink, so each modality has medians of its own
			column := mat.Col(nil, k, z)
			slices.Sort(column)
			medians[k] = column[s.n/2]
		}
		s.learned(nil, w, medians)
	}
}

// neighbours returns D^-1/2 A D^-1/2, A joining each row with its k nearest and these with it.
func neighbours(x *mat.Dense, k int) *mat.Dense {
	a := distances(x, x)
	n, _ := a.Dims()
	near := mat.NewDense(n, n, nil)
	order, row := make([]int, n), make([]float64, n)
	for i := range n {
		copy(row, a.RawRowView(i))
		row[i] = math.Inf(1)
		floats.ArgsortStable(row, order)
		for _, j := range order[:k] {
			near.Set(i, j, 1)
			near.Set(j, i, 1)
		}
	}
	degree := mat.NewDense(n, 1, slices.Repeat([]float64{1}, n))
	degree = mul(near, degree)
	near.Apply(func(i, j int, v float64) float64 {
		return v / math.Sqrt(degree.At(i, 0)*degree.At(j, 0))
	}, near)
	return near
}
