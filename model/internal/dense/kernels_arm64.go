package dense

import "unsafe"

// kernelSets returns the sets that this machine can run, fastest first. Every machine
// that Go runs on has the vectors of the kernels.
func kernelSets() []kernelSet { return []kernelSet{neon, generic} }

// The kernels in assembly follow the rules of kernels_amd64.go. Widening needs no
// kernel.

func (k kernelSet) tile(size int, t *tile) {
	switch {
	case k == neon && size == 4:
		tile32NEON(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case k == neon:
		tile64NEON(t.n, t.a, t.row, t.col, t.b, t.c, t.stride, t.first)
	case size == 4:
		tileGeneric[float32](t)
	default:
		tileGeneric[float64](t)
	}
}

func (k kernelSet) row(size, n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	switch {
	case k == neon && size == 4:
		row32NEON(n, a, b, panels, c)
	case k == neon:
		row64NEON(n, a, b, panels, c)
	case size == 4:
		rowGeneric[float32](n, a, b, panels, c)
	default:
		rowGeneric[float64](n, a, b, panels, c)
	}
}

func (k kernelSet) sparse(index []uint32, value []float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer) {
	if k == generic {
		sparseGeneric(index, value, b, panel, panels, c)
		return
	}
	for i := range panels {
		sparseNEON(len(index), &index[0], &value[0], unsafe.Add(b, i*panel), unsafe.Add(c, i*panelBytes))
	}
}

func (kernelSet) widen(n int, dst *float64, src *float32, stride int) {
	widenGeneric(n, dst, src, stride)
}

func (k kernelSet) gaussian(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	if k == generic {
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
