package methods

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// fitSePH is SePH (Lin, Ding, Hu and Wang, CVPR 2015). Distances of real H are distributed as similarities of
// labels:
//
//	sum_ij p_ij log(p_ij / q_ij) + alpha/(n q) ||H| - 1|^2,  p_ij ~ g_i'g_j,  q_ij ~ 1 / (1 + |h_i - h_j|^2/4)
//
// over i != j. The gradient is
//
//	sum_j (p_ij - q_ij) (h_i - h_j) / (1 + |h_i - h_j|^2/4) + 2 alpha/(n q) (|h_i| - 1) sgn(h_i)
//
// and B = sgn(H). alpha .01; 60 steps with momentum where they lower the objective; rbf with 500 anchors, and
// ridge regression (.01) for the authors' kernel logistic one. The sum of projections is their product of
// probabilities.
func fitSePH(s *run) {
	s.mapped(rbf(500, 2))
	g := unitRows(s.Y)
	p := mul(g, g.T())
	for i := range s.n {
		p.Set(i, i, 0)
	}
	p.Scale(1/max(mat.Sum(p), 1e-300), p)
	h := normal(s.r, s.n, s.q)
	f, gradient := semantics(p, h)
	speed, step := mat.NewDense(s.n, s.q, nil), float64(s.n)
	for s.sweep(60) {
		for tries := 0; tries < 30; tries++ {
			speed = add(scaled(.9, speed), -step, gradient)
			next := add(mat.DenseCopyOf(h), 1, speed)
			value, at := semantics(p, next)
			if value <= f {
				h, f, gradient, step = next, value, at, 1.2*step
				break
			}
			speed, step = scaled(0, speed), step/4
		}
		s.after(f)
	}
	s.finish(.01, signs(h))
}

// semantics returns the objective of SePH and its gradient.
func semantics(p, h *mat.Dense) (f float64, gradient *mat.Dense) {
	w := apply(distances(h, h), func(d float64) float64 { return 1 / (1 + d/4) })
	n, q := h.Dims()
	z := mat.Sum(w) - float64(n)
	sums, scale := make([]float64, n), .01/float64(n*q)
	for i := range n {
		row, p := w.RawRowView(i), p.RawRowView(i)
		for j, v := range row {
			if p[j] > 0 {
				f += p[j] * math.Log(p[j]*z/v)
			}
			if row[j] = (p[j] - v/z) * v; i == j {
				row[j] = 0
			}
			sums[i] += row[j]
		}
	}
	gradient = scaled(-1, mul(w, h))
	for i := range n {
		row := gradient.RawRowView(i)
		for k, v := range h.RawRowView(i) {
			off := math.Abs(v) - 1
			f += scale * off * off
			row[k] += sums[i]*v + 2*scale*off*math.Copysign(1, v)
		}
	}
	return f, gradient
}

// fitGSePH is GSePH (Mandal, Chaudhury and Biswas, CVPR 2017). Inner products of codes are similarities of
// labels:
//
//	|q S - B_1 B_2'|^2  s.t. B_1, B_2 in {-1, 1};  S = G G'
//
// Each set moves bit by bit (cyclic coordinate descent); S is never formed, as G has c columns. Paired items
// get sgn(B_1 + B_2) in the end. 10 sweeps; map and projections as in SePH.
func fitGSePH(s *run) {
	s.mapped(rbf(500, 2))
	g, q := unitRows(s.Y), float64(s.q)
	a, b := signs(normal(s.r, s.n, s.q)), signs(normal(s.r, s.n, s.q))
	for s.sweep(10) {
		cyclic(a, scaled(q, mul(g, mul(g.T(), b))), mul(b.T(), b))
		cyclic(b, scaled(q, mul(g, mul(g.T(), a))), mul(a.T(), a))
		s.after(q*q*square(mul(g.T(), g)) - 2*q*dot(mul(g.T(), a), mul(g.T(), b)) +
			dot(mul(a.T(), a), mul(b.T(), b)))
	}
	s.finish(.01, signs(add(a, 1, b)))
}
