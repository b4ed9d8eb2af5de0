package dense

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet {
	sets := []kernelSet{generic}
	x := &cpu.X86
	if x.HasAVX2 && x.HasFMA {
		sets = append([]kernelSet{avx2}, sets...)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			sets = append([]kernelSet{avx512}, sets...)
		}
	}
	return sets
}

// The kernels in assembly take pointers to as many numbers as they read and write; the
// callers check that. n and panels are at least 1.

func (k kernelSet) tile(size int, t *tile) {
	switch {
	case k == avx512 && size == 4:
		tile32AVX512(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == avx512:
		tile64AVX512(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == avx2 && size == 4:
		tile32AVX2(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == avx2:
		tile64AVX2(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case size == 4:
		tileGeneric[float32](t)
	default:
		tileGeneric[float64](t)
	}
}

func (k kernelSet) row(size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	switch {
	case k == avx512 && size == 4:
		row32AVX512(n, a, b, panels, c)
	case k == avx512:
		row64AVX512(n, a, b, panels, c)
	case k == avx2 && size == 4:
		row32AVX2(n, a, b, panels, c)
	case k == avx2:
		row64AVX2(n, a, b, panels, c)
	case size == 4:
		rowGeneric[float32](n, a, b, panels, c)
	default:
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func (k kernelSet) sparse(index []uint32, value []float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer) {
	switch k {
	case avx512:
		sparseAVX512(len(index), &index[0], &value[0], b, panel, panels, c)
	case avx2:
		sparseAVX2(len(index), &index[0], &value[0], b, panel, panels, c)
	default:
		sparseGeneric(index, value, b, panel, panels, c)
	}
}

func (k kernelSet) widen(n int, dst *float64, src *float32, stride int) {
	switch k {
	case avx512:
		widenAVX512(n, dst, src, stride)
	case avx2:
		widenAVX2(n, dst, src, stride)
	default:
		widenGeneric(n, dst, src, stride)
	}
}

func (k kernelSet) gaussian(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	switch k {
	case avx512:
		gaussianAVX512(len(dst), &dst[0], &dots[0], &norms[0], norm, gamma)
	case avx2:
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
