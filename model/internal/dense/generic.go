package dense

import (
	"math"
	"unsafe"
)

// Kernels for machines without assembly. They add in one order wherever the numbers are
// in memory, and round as the instructions of the others do: once for a product and its
// sum. That is slow where the processor has no such instruction: amd64 before 2013.

// fma returns x*y + z, rounded once.
func fma[T Float](x, y, z T) T {
	if unsafe.Sizeof(x) == 8 {
		return T(math.FMA(float64(x), float64(y), float64(z)))
	}
	return T(fma32(float32(x), float32(y), float32(z)))
}

// fma32 is fma for float32. A float64 holds the product exactly. The sum is rounded to
// float64, and then to float32: that differs from one rounding only where the float64 is
// in the middle between two float32, or is too small for all of their digits, and the
// sum is not exact. Then its last bit is set, so that it lies on the side of the sum
// (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums, 2008).
func fma32(x, y, z float32) float32 {
	const low = 1<<29 - 1 // digits that a float32 lacks
	p, a := float64(x)*float64(y), float64(z)
	s := p + a
	bits := math.Float64bits(s)
	if bits&low != 1<<28 && math.Abs(s) >= 0x1p-126 {
		return float32(s)
	}
	b := s - p
	if e := (p - (s - b)) + (a - b); e != 0 && bits&1 == 0 {
		if (e > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}

func tileGeneric[T Float](t *tile) {
	for i := 0; i < tileRows; i += 2 {
		for j := 0; j < panelBytes; j += 3 * size[T]() {
			tile2x3[T](t, i, j)
		}
	}
}

// tile2x3 computes two rows from i on, and three columns from byte j on: as many as fit
// into 16 registers.
func tile2x3[T Float](t *tile, i, j int) {
	c0 := (*[3]T)(unsafe.Add(t.c, i*t.stride+j))
	c1 := (*[3]T)(unsafe.Add(t.c, (i+1)*t.stride+j))
	if t.first {
		*c0, *c1 = [3]T{}, [3]T{}
	}
	x0, x1, x2 := c0[0], c0[1], c0[2]
	y0, y1, y2 := c1[0], c1[1], c1[2]
	a0, a1, b := i*t.row, (i+1)*t.row, j
	for range t.n {
		row := (*[3]T)(unsafe.Add(t.b, b))
		u, v := *(*T)(unsafe.Add(t.a, a0)), *(*T)(unsafe.Add(t.a, a1))
		x0 = fma(u, row[0], x0)
		y0 = fma(v, row[0], y0)
		x1 = fma(u, row[1], x1)
		y1 = fma(v, row[1], y1)
		x2 = fma(u, row[2], x2)
		y2 = fma(v, row[2], y2)
		a0, a1, b = a0+t.col, a1+t.col, b+panelBytes
	}
	c0[0], c0[1], c0[2] = x0, x1, x2
	c1[0], c1[1], c1[2] = y0, y1, y2
}

// rowGeneric multiplies a, n numbers, with panels of n rows.
func rowGeneric[T Float](n int, a, b unsafe.Pointer, panels int, c unsafe.Pointer) {
	x := unsafe.Slice((*T)(a), n)
	for panel := range panels {
		for j := 0; j < panelBytes; j += 6 * size[T]() {
			var s0, s1, s2, s3, s4, s5 T
			at := panel*n*panelBytes + j
			for _, v := range x {
				row := (*[6]T)(unsafe.Add(b, at))
				s0 = fma(v, row[0], s0)
				s1 = fma(v, row[1], s1)
				s2 = fma(v, row[2], s2)
				s3 = fma(v, row[3], s3)
				s4 = fma(v, row[4], s4)
				s5 = fma(v, row[5], s5)
				at += panelBytes
			}
			*(*[6]T)(unsafe.Add(c, panel*panelBytes+j)) = [6]T{s0, s1, s2, s3, s4, s5}
		}
	}
}

// sparseGeneric multiplies a row with panels that are panel bytes apart. The row is not
// empty.
func sparseGeneric(index []uint32, value []float32, b unsafe.Pointer, panel, panels int, c unsafe.Pointer) {
	const w = panelBytes / 4
	for i := range panels {
		sum := (*[w]float32)(unsafe.Add(c, i*panelBytes))
		*sum = [w]float32{}
		for e, v := range value {
			row := (*[w]float32)(unsafe.Add(b, i*panel+int(index[e])*panelBytes))
			for j := range sum {
				sum[j] = fma32(v, row[j], sum[j])
			}
		}
	}
}

// widenGeneric copies n rows of a panel's width to dst. Rows of src are stride numbers
// apart.
func widenGeneric(n int, dst *float64, src *float32, stride int) {
	const w = panelBytes / 8
	for i := range n {
		to := (*[w]float64)(unsafe.Add(unsafe.Pointer(dst), i*panelBytes))
		from := (*[w]float32)(unsafe.Add(unsafe.Pointer(src), i*stride*4))
		for j, v := range from {
			to[j] = float64(v)
		}
	}
}
