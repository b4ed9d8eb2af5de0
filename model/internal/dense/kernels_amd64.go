package dense

import (
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// The kernels in assembly take pointers to as many numbers as they read and write; the
// callers check that. n and panels are at least 1.

func tileBy(k simd.Set, size int, t *tile) {
	switch {
	case k == simd.AVX512 && size == 4:
		tile32AVX512(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == simd.AVX512:
		tile64AVX512(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == simd.AVX2 && size == 4:
		tile32AVX2(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == simd.AVX2:
		tile64AVX2(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case size == 4:
		tileGeneric[float32](t)
	default:
		tileGeneric[float64](t)
	}
}

func rowBy(k simd.Set, size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	switch {
	case k == simd.AVX512 && size == 4:
		row32AVX512(n, a, b, panels, c)
	case k == simd.AVX512:
		row64AVX512(n, a, b, panels, c)
	case k == simd.AVX2 && size == 4:
		row32AVX2(n, a, b, panels, c)
	case k == simd.AVX2:
		row64AVX2(n, a, b, panels, c)
	case size == 4:
		rowGeneric[float32](n, a, b, panels, c)
	default:
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func sparseBy(k simd.Set, index []uint32, value []float32, b unsafe.Pointer, panel, panels int,
	c unsafe.Pointer) {
	switch k {
	case simd.AVX512:
		sparseAVX512(len(index), &index[0], &value[0], b, panel, panels, c)
	case simd.AVX2:
		sparseAVX2(len(index), &index[0], &value[0], b, panel, panels, c)
	default:
		sparseGeneric(index, value, b, panel, panels, c)
	}
}

func widenBy(k simd.Set, n int, dst *float64, src *float32, stride int) {
	switch k {
	case simd.AVX512:
		widenAVX512(n, dst, src, stride)
	case simd.AVX2:
		widenAVX2(n, dst, src, stride)
	default:
		widenGeneric(n, dst, src, stride)
	}
}

func gaussianBy(k simd.Set, dst, dots []float32, norm float32, norms []float32, gamma float32) {
	switch k {
	case simd.AVX512:
		gaussianAVX512(len(dst), &dst[0], &dots[0], &norms[0], norm, gamma)
	case simd.AVX2:
		gaussianAVX2(len(dst), &dst[0], &dots[0], &norms[0], norm, gamma)
	default:
		gaussianGeneric(dst, dots, norm, norms, gamma)
	}
}

//go:noescape
func tile32AVX512(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func tile64AVX512(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func row32AVX512(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func row64AVX512(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func sparseAVX512(n int, index *uint32, value *float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer)

//go:noescape
func widenAVX512(n int, dst *float64, src *float32, stride int)

//go:noescape
func gaussianAVX512(n int, dst, dots, norms *float32, norm, gamma float32)

//go:noescape
func tile32AVX2(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func tile64AVX2(n int, a unsafe.Pointer, row, col int, b, c unsafe.Pointer, stride int, first bool)

//go:noescape
func row32AVX2(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func row64AVX2(n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer)

//go:noescape
func sparseAVX2(n int, index *uint32, value *float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer)

//go:noescape
func widenAVX2(n int, dst *float64, src *float32, stride int)

//go:noescape
func gaussianAVX2(n int, dst, dots, norms *float32, norm, gamma float32)
