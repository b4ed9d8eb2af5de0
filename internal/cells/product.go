package cells

// Product returns x.y of vectors with a multiple of 32 coordinates. All kernels add up in the same
// order, and multiply before they add, so that they find the same.
func Product(x, y []float32) float32 {
	return productBy(active, x, y[:len(x)])
}

// productGeneric adds up every 32nd product. Then it adds the upper half of the sums to the lower until
// one is left.
func productGeneric(x, y []float32) float32 {
	var sums [32]float32
	for i := 0; i < len(x); i += len(sums) {
		p, q := x[i:][:len(sums)], y[i:][:len(sums)]
		for j := range sums {
			sums[j] += float32(p[j] * q[j])
		}
	}
	for n := len(sums) / 2; n > 0; n /= 2 {
		for j := range n {
			sums[j] += sums[j+n]
		}
	}
	return sums[0]
}
