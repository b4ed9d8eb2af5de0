//go:build !amd64 && !arm64

package dense

import (
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
)

func tileBy(_ simd.Set, size int, t *tile) {
	if size == 4 {
		tileGeneric[float32](t)
	} else {
		tileGeneric[float64](t)
	}
}

func rowBy(_ simd.Set, size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	if size == 4 {
		rowGeneric[float32](n, a, b, panels, c)
	} else {
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func sparseBy(_ simd.Set, index []uint32, value []float32, b unsafe.Pointer, panel, panels int,
	c unsafe.Pointer) {
	sparseGeneric(index, value, b, panel, panels, c)
}

func widenBy(_ simd.Set, n int, dst *float64, src *float32, stride int) {
	widenGeneric(n, dst, src, stride)
}

func gaussianBy(_ simd.Set, dst, dots []float32, norm float32, norms []float32, gamma float32) {
	gaussianGeneric(dst, dots, norm, norms, gamma)
}
