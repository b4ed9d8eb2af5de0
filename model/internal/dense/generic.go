package dense

import "unsafe"

// Kernels for machines without assembly, as fast as those of gonum. They add in one
// order wherever the numbers are in memory. Converting each product keeps the compiler
// from fusing it with the addition in one kernel and not in another.

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
		x0 += T(u * row[0])
		y0 += T(v * row[0])
		x1 += T(u * row[1])
		y1 += T(v * row[1])
		x2 += T(u * row[2])
		y2 += T(v * row[2])
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
				s0 += T(v * row[0])
				s1 += T(v * row[1])
				s2 += T(v * row[2])
				s3 += T(v * row[3])
				s4 += T(v * row[4])
				s5 += T(v * row[5])
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
				sum[j] += float32(v * row[j])
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
