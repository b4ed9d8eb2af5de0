package model

import (
	"github.com/fddhdb/fddhdb/internal/dense"
)

// Residual returns, of each modality, the mean of (h - z)^2 over the bits and items of
// the statistics, where z = P phi is what the model's projection makes of an item
// whose code is h: 0 where projections give every code, 1 where they say nothing. It
// takes no items, as
//
//	|H - P Phi|^2 = n q - 2 <P, B> + <P, A P>.
//
// These items have taught, so new ones are farther off. A modality without items has
// 1. The cost is q k^2 multiplications a modality; the error wraps ErrMismatch.
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
		a := dense.Of(k, k, make([]float64, k*k)) // both triangles
		for i := range k {
			for j := range i + 1 {
				a.Data[i*k+j], a.Data[j*k+i] = part.a[i*k+j], part.a[i*k+j]
			}
		}
		p := m.p[t].Unpack()
		pa := dense.Of(m.bits, k, make([]float64, m.bits*k))
		dense.MulNT(pa, p, dense.Pack(a))
		total := float64(part.n) * float64(m.bits)
		sum := total
		for i, v := range p.Data {
			sum += v * (pa.Data[i] - 2*part.b[i])
		}
		residuals = append(residuals, max(sum, 0)/total)
	}
	return residuals, nil
}
