package dense

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/simd"
)

// eachSet runs f with each set of kernels that this machine has.
func eachSet(t *testing.T, f func(t *testing.T)) {
	for _, k := range sets {
		t.Run(k.String(), func(t *testing.T) {
			useSet(t, k)
			f(t)
		})
	}
}

func useSet(t testing.TB, k simd.Set) {
	was := active
	active = k
	t.Cleanup(func() { active = was })
}

// add returns sum + x*y as the kernels round it.
func add[T Float](sum, x, y T) T {
	if size[T]() == 8 {
		return T(math.FMA(float64(x), float64(y), float64(sum)))
	}
	// The product is exact in float64. The sum is rounded to odd, so that rounding it
	// again gives the result of rounding once.
	p, c := float64(x)*float64(y), float64(sum)
	s := p + c
	t := s - p
	e := (p - (s - t)) + (c - t)
	if b := math.Float64bits(s); e != 0 && b&1 == 0 {
		if (e > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return T(float32(s))
}

// random returns a matrix with room between and behind its rows, filled with NaN.
func random[T Float](rng *rand.Rand, rows, cols, gap int) Matrix[T] {
	m := Matrix[T]{Rows: rows, Cols: cols, Stride: cols + gap, Data: make([]T, rows*(cols+gap)+gap)}
	for i := range m.Data {
		m.Data[i] = T(math.NaN())
	}
	for i := range rows {
		for j := range m.row(i) {
			m.row(i)[j] = T(rng.NormFloat64())
		}
	}
	return m
}

func clone[T Float](m Matrix[T]) Matrix[T] {
	m.Data = append([]T(nil), m.Data...)
	return m
}

// same returns an error that tells where two matrices differ: in the last bit, or in
// the room between or behind their rows. It ignores elements for which skip is true.
func same[T Float](got, want Matrix[T], skip func(i, j int) bool) error {
	for at, v := range want.Data {
		g := got.Data[at]
		i, j := 0, at
		if want.Stride > 0 {
			i, j = at/want.Stride, at%want.Stride
		}
		if skip != nil && i < want.Rows && j < want.Cols && skip(i, j) {
			continue
		}
		if math.Float64bits(float64(g)) != math.Float64bits(float64(v)) && !(g != g && v != v) {
			return fmt.Errorf("element (%d, %d) is %v, want %v", i, j, g, v)
		}
	}
	return nil
}

// near is same, up to a relative error of the largest element.
func near[T Float](got, want Matrix[T], eps float64, skip func(i, j int) bool) error {
	var scale float64
	for i := range want.Rows {
		for _, v := range want.row(i) {
			scale = max(scale, math.Abs(float64(v)))
		}
	}
	for i := range want.Rows {
		for j, v := range want.row(i) {
			if skip != nil && skip(i, j) {
				continue
			}
			if g := got.row(i)[j]; !(math.Abs(float64(g)-float64(v)) <= eps*scale) {
				return fmt.Errorf("element (%d, %d) is %v, want %v", i, j, g, v)
			}
		}
	}
	return nil
}

// some returns a part of the shapes if the race detector slows the oracles down. The
// detector does not see inside the kernels.
func some[T any](shapes []T) []T {
	if !effort.Race {
		return shapes
	}
	var part []T
	for i := 0; i < len(shapes); i += 7 {
		part = append(part, shapes[i])
	}
	return part
}

func above(i, j int) bool { return j > i }
