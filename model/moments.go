package model

import (
	"math"
	"slices"
)

// moments accumulates mean and spread of the vectors of a modality in one pass
// (Welford's update, which loses nothing when the mean is far from zero and
// gives exactly no spread for a constant), and the least number of each column.
type moments struct {
	n      int
	mean   []float64
	m2     []float64 // sum of (x - mean)^2
	low    []float32
	sparse bool

	// Of sparse vectors, until they are settled: how many have a number in a column;
	// mean, m2 and low are those of these numbers alone, so that a vector costs what
	// it holds.
	count []int
}

// momentColumns is how many columns are summed together, by one goroutine.
const momentColumns = 64

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

// add takes vectors, in the form of the modality. The sums are the same for any
// number of workers.
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

// settle ends the adding of vectors: the zeros of sparse ones join the other numbers
// (Chan, Golub and LeVeque 1979, with no mean and no spread on their side).
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

// lowest returns the least number of all.
func (m *moments) lowest() float32 { return slices.Min(m.low) }

// deviation returns the standard deviation of a column, 1 where it is constant.
func (m *moments) deviation(column int) float64 {
	if v := m.m2[column] / float64(m.n); v > 1e-300 {
		return math.Sqrt(v)
	}
	return 1
}

// sigma returns the mean squared distance between two vectors, over all n^2
// ordered pairs: 2 (mean|x|^2 - |mean x|^2), which is twice the mean squared
// distance from the mean, without a pair being formed.
//
// Vectors that are all equal have none; the map then uses 1 and constant is
// true. Such a modality says nothing about the labels, but the others can
// still be learned: its features are 1 for that vector and fall to 0 away from
// it, and the report says that it is constant.
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
