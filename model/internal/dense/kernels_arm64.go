package dense

import (
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// The kernels in assembly follow the rules of kernels_amd64.go. Widening needs no
// kernel.

func tileBy(k simd.Set, size int, t *tile) {
	switch {
	case k == simd.NEON && size == 4:
		tile32NEON(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == simd.NEON:
		tile64NEON(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case size == 4:
		tileGeneric[float32](t)
	default:
		tileGeneric[float64](t)
	}
}

func rowBy(k simd.Set, size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	switch {
	case k == simd.NEON && size == 4:
		row32NEON(n, a, b, panels, c)
	case k == simd.NEON:
		row64NEON(n, a, b, panels, c)
	case size == 4:
		rowGeneric[float32](n, a, b, panels, c)
	default:
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func sparseBy(k simd.Set, index []uint32, value []float32, b unsafe.Pointer, panel, panels int,
	c unsafe.Pointer) {
	if k == simd.Generic {
		sparseGeneric(index, value, b, panel, panels, c)
		return
	}
	for i := range panels {
		sparseNEON(len(index), &index[0], &value[0], unsafe.Add(b, i*panel), unsafe.Add(c, i*panelBytes))
	}
}

func widenBy(_ simd.Set, n int, dst *float64, src *float32, stride int) {
	widenGeneric(n, dst, src, stride)
}

func gaussianBy(k simd.Set, dst, dots []float32, norm float32, norms []float32, gamma float32) {
	if k == simd.Generic {
		gaussianGeneric(dst, dots, norm, norms, gamma)
		return
	}
	whole := len(dst) &^ 3
	if whole > 0 {
		gaussianNEON(whole, &dst[0], &dots[0], &norms[0], norm, gamma)
	}
	if whole < len(dst) {
		var x, y [4]float32
		copy(x[:], dots[whole:])
		copy(y[:], norms[whole:])
		gaussianNEON(4, &x[0], &x[0], &y[0], norm, gamma)
		copy(dst[whole:], x[:])
	}
}

//go:noescape
func tile32NEON(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func tile64NEON(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func row32NEON(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func row64NEON(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func sparseNEON(n int, index *uint32, value *float32, b, c unsafe.Pointer)

// gaussianNEON takes a multiple of 4 numbers.
//
//go:noescape
func gaussianNEON(n int, dst, dots, norms *float32, norm, gamma float32)
