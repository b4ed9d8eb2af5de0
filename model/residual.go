package model

import (
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// residualRows is the number of rows of A that are multiplied at a time. All at once
// would take twice the memory of A.
const residualRows = 256

// Residual returns, for each modality, the mean of (h - z)^2 over the bits and items of
// the statistics. z = P phi is the model's projection of an item with code h. It is 0
// if projections give every code, and 1 if they tell nothing. It needs no items, as
//
//	|H - P Phi|^2 = n q - 2 <P, B> + <P, A P>.
//
// These items have taught, so new items are farther off. A modality without items has
// 1. It costs q k^2 multiplications a modality. The error wraps ErrMismatch.
func (m *Model) Residual(s *Statistics) (residuals []float64, err error) {
	defer guard(&err, "computing residuals")
	if err := m.checkStatistics(s); err != nil {
		return nil, err
	}
	for t := range s.parts {
		part := &s.parts[t]
		if part.n == 0 {
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
		total := float64(part.n) * float64(m.bits)
		sum := total
		for i, v := range p.Data {
			sum += v * (pa.Data[i] - 2*part.b[i])
		}
		residuals = append(residuals, max(sum, 0)/total)
	}
	return residuals, nil
}

// ResidualOf is Residual over items instead of statistics. For items from which the
// model has not learned, it tells how far off queries are. Each modality has the mean
// of (h - z)^2 over the bits of the items that have it and a label that the model
// knows; h is the code of their labels, and n their number. It is 1 if there are none.
// Without updates it grows as the data drifts away from what was learned.
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
	code, h := codec.NewCode(q), make([]float32, q)
	var z []float64
	for t := range m.maps {
		var xs []Vector
		var of []int
		for i, item := range items {
			if item.Vectors[t].Present() && m.LabelCode(code, item.Labels) {
				xs, of = append(xs, item.Vectors[t]), append(of, i)
			}
		}
		var sum float64
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
				m.LabelCode(code, items[i].Labels)
				signs(h, code)
				for j, v := range z[r*q : (r+1)*q] {
					d := float64(h[j]) - v
					sum += d * d
				}
			}
		}
		if n = append(n, len(xs)); len(xs) == 0 {
			residuals = append(residuals, 1)
			continue
		}
		residuals = append(residuals, sum/float64(len(xs)*q))
	}
	return residuals, n, nil
}
