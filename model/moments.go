package model

import (
	"math"
	"slices"
)

// moments accumulates mean and spread of the vectors of a modality in one pass
// (Welford's update, which loses nothing when the mean is far from zero and
// gives exactly no spread for a constant), and the least number of each column.
type moments struct {
	n    int
	mean []float64
	m2   []float64 // sum of (x - mean)^2
	low  []float32
}

// momentColumns is how many columns are summed together, by one goroutine.
const momentColumns = 64

func newMoments(dim int) *moments {
	return &moments{
		mean: make([]float64, dim), m2: make([]float64, dim),
		low: slices.Repeat([]float32{math.MaxFloat32}, dim),
	}
}

// add takes vectors. The sums are the same for any number of workers.
func (m *moments) add(xs [][]float32, workers int) {
	chunks(workers, len(m.mean), momentColumns, func(_, from, to int) {
		mean, m2, low := m.mean[from:to], m.m2[from:to], m.low[from:to]
		for r, x := range xs {
			inv := 1 / float64(m.n+r+1)
			x := x[from:to]
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
