package rotate

// hadamard writes the Walsh-Hadamard transform of x to x, whose length must be a power of two:
// stage by stage, for h = 1, 2, 4 and so on, a and b at a distance of h become a+b and a-b. It is
// not scaled, so that lengths grow by the square root of len(x).
//
// Three stages at a time stay in registers: the loops below load and store each number once for
// eight additions, and their order of additions is that of single stages.
func hadamard(x []float32) {
	n := len(x)
	h := 1
	if n >= 8 {
		for i := 0; i+8 <= n; i += 8 {
			eight((*[8]float32)(x[i:]))
		}
		h = 8
	}
	for ; 8*h <= n; h *= 8 {
		for i := 0; i < n; i += 8 * h {
			eights(x[i:i+8*h], h)
		}
	}
	for ; h < n; h *= 2 {
		for i := 0; i < n; i += 2 * h {
			a, b := x[i:i+h], x[i+h:i+2*h]
			for j, u := range a {
				v := b[j]
				a[j], b[j] = u+v, u-v
			}
		}
	}
}

// eight does the stages 1, 2 and 4 of eight numbers.
func eight(x *[8]float32) {
	a, b, c, d, e, f, g, h := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
	a, b = a+b, a-b
	c, d = c+d, c-d
	e, f = e+f, e-f
	g, h = g+h, g-h
	a, c = a+c, a-c
	b, d = b+d, b-d
	e, g = e+g, e-g
	f, h = f+h, f-h
	x[0], x[4] = a+e, a-e
	x[1], x[5] = b+f, b-f
	x[2], x[6] = c+g, c-g
	x[3], x[7] = d+h, d-h
}

// eights does the stages n, 2n and 4n of 8n numbers.
func eights(x []float32, n int) {
	x0 := x[:n]
	// Of the length of x0, so that no index needs a check.
	x1, x2, x3, x4 := x[n:][:len(x0)], x[2*n:][:len(x0)], x[3*n:][:len(x0)], x[4*n:][:len(x0)]
	x5, x6, x7 := x[5*n:][:len(x0)], x[6*n:][:len(x0)], x[7*n:][:len(x0)]
	for i := range x0 {
		a, b, c, d, e, f, g, h := x0[i], x1[i], x2[i], x3[i], x4[i], x5[i], x6[i], x7[i]
		a, b = a+b, a-b
		c, d = c+d, c-d
		e, f = e+f, e-f
		g, h = g+h, g-h
		a, c = a+c, a-c
		b, d = b+d, b-d
		e, g = e+g, e-g
		f, h = f+h, f-h
		x0[i], x4[i] = a+e, a-e
		x1[i], x5[i] = b+f, b-f
		x2[i], x6[i] = c+g, c-g
		x3[i], x7[i] = d+h, d-h
	}
}
