package model

import (
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// residualRows is the number of rows of A that are multiplied at a time. All at once
// would take twice the memory of A.
const residualRows = 256

// Residual returns, for each modality, how far the model's projections z = P phi of the
// items of the statistics are from what they learn, g (LabelAim; for AimCodes the code):
// the sum of |g - z|^2 over the items as a share of that of |g|^2. It is 0 if projections
// give everything, and 1 if they tell nothing. m is the model that has learned the
// statistics. It needs no items, as
//
//	|G - P Phi|^2 = |G|^2 - 2 <P, G Phi'> + <P, A P>.
//
// These items have taught, so new items are farther off. A modality without items has
// 1. It costs q k^2 multiplications a modality. The error wraps ErrMismatch.
func (m *Model) Residual(s *Statistics) (residuals []float64, err error) {
	defer guard(&err, "computing residuals")
	if err := m.checkStatistics(s); err != nil {
		return nil, err
	}
	x := m.mixture(s)
	for t := range s.parts {
		part := &s.parts[t]
		total := part.square * float64(m.bits)
		if m.aim == AimLabels {
			total = m.squares(x, part) + x.scale*x.scale*float64(m.bits)*float64(part.unlabelled)
		}
		if part.n == 0 || !(total > 0) {
			residuals = append(residuals, 1)
			continue
		}
		k := part.k
		p := m.p[t].Unpack()
		pa := dense.Of(m.bits, k, make([]float64, m.bits*k))
		some := make([]float64, min(residualRows, k)*k)
		for from := 0; from < k; from += residualRows {
			to := min(from+residualRows, k)
			a := dense.Of(to-from, k, some) // rows of A, with both triangles
			for i := from; i < to; i++ {
				copy(a.Data[(i-from)*k:], part.a[i*k:i*k+i+1])
			}
			for j := from + 1; j < k; j++ {
				for i := from; i < min(j, to); i++ {
					a.Data[(i-from)*k+j] = part.a[j*k+i]
				}
			}
			product := dense.Matrix[float64]{Rows: m.bits, Cols: to - from, Stride: k, Data: pa.Data[from:]}
			dense.MulNT(product, p, dense.Pack(a))
		}
		b := slices.Concat(part.b, part.taught)
		sum, taught := total, m.mix(x, dense.Of(len(b)/k, k, b)).Data
		for i, v := range p.Data {
			sum += v * (pa.Data[i] - 2*taught[i])
		}
		residuals = append(residuals, max(sum, 0)/total)
	}
	return residuals, nil
}

// ResidualOf is Residual over items instead of statistics. For items from which the
// model has not learned, it tells how far off queries are. It is over the items that have
// the modality and a label that the model knows; n is their number. It is 1 if there are
// none. Without updates it grows as the data drifts away from what was learned.
//
// It costs k (d+q) multiplications an item and modality, on one goroutine. The errors
// are those of Encoder.Project.
func (m *Model) ResidualOf(items []Example) (residuals []float64, n []int, err error) {
	defer guard(&err, "computing residuals")
	for _, item := range items {
		if err := m.checkVectors(item); err != nil {
			return nil, nil, err
		}
	}
	e, q := m.NewEncoder(), m.bits
	g := make([]float64, q)
	var z []float64
	for t := range m.maps {
		var xs []Vector
		var of []int
		for i, item := range items {
			if item.Vectors[t].Present() && m.Knows(item.Labels) {
				xs, of = append(xs, item.Vectors[t]), append(of, i)
			}
		}
		var sum, total float64
		for from := 0; from < len(xs); from += mapRows {
			to := min(from+mapRows, len(xs))
			if z = z[:0]; cap(z) < (to-from)*q {
				z = make([]float64, 0, mapRows*q)
			}
			z = z[:(to-from)*q]
			if err := e.ProjectVectors(z, t, xs[from:to]); err != nil {
				return nil, nil, err
			}
			for r, i := range of[from:to] {
				m.LabelAim(g, items[i].Labels)
				for j, v := range z[r*q : (r+1)*q] {
					sum += (g[j] - v) * (g[j] - v)
					total += g[j] * g[j]
				}
			}
		}
		if n = append(n, len(xs)); !(total > 0) {
			residuals = append(residuals, 1)
			continue
		}
		residuals = append(residuals, sum/total)
	}
	return residuals, n, nil
}
