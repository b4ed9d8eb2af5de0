//go:build !amd64 && !arm64

package dense

import "unsafe"

// kernelSets returns the sets that this machine can run, fastest first.
func kernelSets() []kernelSet { return []kernelSet{generic} }

func (kernelSet) tile(size int, t *tile) {
	if size == 4 {
		tileGeneric[float32](t)
	} else {
		tileGeneric[float64](t)
	}
}

func (kernelSet) row(size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	if size == 4 {
		rowGeneric[float32](n, a, b, panels, c)
	} else {
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func (kernelSet) sparse(index []uint32, value []float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer) {
	sparseGeneric(index, value, b, panel, panels, c)
}

func (kernelSet) widen(n int, dst *float64, src *float32, stride int) {
	widenGeneric(n, dst, src, stride)
}

func (kernelSet) gaussian(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	gaussianGeneric(dst, dots, norm, norms, gamma)
}
