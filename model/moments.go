package model

import (
	"math"
	"slices"
)

// moments accumulates mean, spread and least number of each column of the vectors of a
// modality, in one pass. It uses Welford's update, which loses nothing if the mean is
// far from zero, and gives exactly no spread for a constant.
type moments struct {
	n      int       // vectors
	mean   []float64 // by column
	m2     []float64 // by column: sum of (x - mean)^2
	low    []float32 // by column: least number
	sparse bool

	// Of sparse vectors, until settle: the vectors that have a number in a column.
	// mean, m2 and low cover these numbers alone until then, so that adding a vector
	// costs only the numbers that it holds.
	count []int
}

// momentColumns is the number of columns that one goroutine sums together.
const momentColumns = 64

// newMoments returns the moments of no vectors.
func newMoments(mod Modality) *moments {
	m := &moments{
		mean: make([]float64, mod.Dim), m2: make([]float64, mod.Dim),
		low: slices.Repeat([]float32{math.MaxFloat32}, mod.Dim), sparse: mod.Sparse,
	}
	if mod.Sparse {
		m.count = make([]int, mod.Dim)
	}
	return m
}

// add adds vectors in the form of the modality. The sums are the same for any number of
// workers.
func (m *moments) add(xs []Vector, workers int) {
	if m.sparse {
		m.addSparse(xs)
		return
	}
	chunks(workers, len(m.mean), momentColumns, func(_, from, to int) {
		mean, m2, low := m.mean[from:to], m.m2[from:to], m.low[from:to]
		for r, x := range xs {
			inv := 1 / float64(m.n+r+1)
			x := x.Value[from:to]
			mean, m2, low := mean[:len(x)], m2[:len(x)], low[:len(x)]
			for i, v := range x {
				if v < low[i] {
					low[i] = v
				}
				v := float64(v)
				d := v - mean[i]
				e := mean[i] + d*inv
				mean[i] = e
				m2[i] += d * (v - e)
			}
		}
	})
	m.n += len(xs)
}

// addSparse is add for sparse vectors. It sees the numbers that are there; settle adds the
// zeros.
func (m *moments) addSparse(xs []Vector) {
	for _, x := range xs {
		for e, j := range x.Index {
			v := x.Value[e]
			m.low[j] = min(m.low[j], v)
			m.count[j]++
			d := float64(v) - m.mean[j]
			m.mean[j] += d / float64(m.count[j])
			m.m2[j] += d * (float64(v) - m.mean[j])
		}
	}
	m.n += len(xs)
}

// settle ends the adding of vectors. It merges the zeros of sparse vectors with the
// other numbers (Chan, Golub and LeVeque 1979; the zeros have no mean and no spread).
func (m *moments) settle() {
	for j, c := range m.count {
		zeros := float64(m.n - c)
		if c == m.n {
			continue
		}
		share := float64(c) / float64(m.n)
		m.m2[j] += m.mean[j] * m.mean[j] * share * zeros
		m.mean[j] *= share
		m.low[j] = min(m.low[j], 0)
	}
	m.count = nil
}

// lowest returns the least number of all columns.
func (m *moments) lowest() float32 { return slices.Min(m.low) }

// deviation returns the standard deviation of a column, or 1 if it is constant.
func (m *moments) deviation(column int) float64 {
	if v := m.m2[column] / float64(m.n); v > 1e-300 {
		return math.Sqrt(v)
	}
	return 1
}

// sigma returns the mean squared distance between two vectors, over all n^2 ordered
// pairs: 2 (mean|x|^2 - |mean x|^2). That is twice the mean squared distance from the
// mean, so no pair is formed.
//
// If all vectors are equal sigma is 1 and constant is true. Such a modality says
// nothing about the labels, but the others can still be learned. Its features are 1 for
// that vector and fall to 0 away from it. The report says that it is constant.
func (m *moments) sigma() (sigma float64, constant bool) {
	for _, v := range m.m2 {
		sigma += v
	}
	sigma *= 2 / float64(m.n)
	if !(sigma > 1e-300) {
		return 1, true
	}
	return sigma, false
}

// merge adds the vectors of o, none of which is in m (Chan, Golub and LeVeque 1979).
func (m *moments) merge(o *moments) {
	for j := range m.mean {
		a, b := float64(m.n), float64(o.n)
		if m.sparse {
			a, b = float64(m.count[j]), float64(o.count[j])
			m.count[j] += o.count[j]
		}
		m.low[j] = min(m.low[j], o.low[j])
		switch n := a + b; {
		case b == 0:
		case a == 0:
			m.mean[j], m.m2[j] = o.mean[j], o.m2[j]
		default:
			d := o.mean[j] - m.mean[j]
			m.mean[j] += d * (b / n)
			m.m2[j] += o.m2[j] + d*d*(a*b/n)
		}
	}
	m.n += o.n
}

// reset forgets all vectors.
func (m *moments) reset() {
	*m = *newMoments(Modality{Dim: len(m.mean), Sparse: m.sparse})
}

// appendTo writes the moments, which are not settled yet.
func (m *moments) appendTo(w *wireWriter) {
	w.u64(uint64(m.n))
	w.f64s(m.mean...)
	w.f64s(m.m2...)
	w.f32s(m.low)
	for _, c := range m.count {
		w.u64(uint64(c))
	}
}

// readFrom reads what appendTo has written, in place of what is there.
func (m *moments) readFrom(r *wireReader) {
	m.n = r.number("the number of vectors")
	m.mean, m.m2 = r.f64s(len(m.mean), "means"), r.f64s(len(m.m2), "squares")
	m.low = r.f32s(len(m.low), "least numbers")
	for j := range m.count {
		m.count[j] = r.number("the vectors with a number")
	}
}
