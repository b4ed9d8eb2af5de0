package synth

import (
	"math"
	"math/rand/v2"
)

// Unbalanced returns n items of 20 Gaussian classes in two modalities. The most frequent
// class has 300 times as many items as the rarest, which is the last one or, reversed, the
// first. The first 20 items are one of each class.
func Unbalanced(seed uint64, n int, reversed bool) *Data {
	const classes = 20
	dims, noise := []int{64, 32}, []float64{2.6, 2}
	centres := rand.New(rand.NewPCG(9, 9)) // the same for all seeds
	var centre [2][classes][]float64
	for t, dim := range dims {
		for l := range classes {
			for range dim {
				centre[t][l] = append(centre[t][l], centres.NormFloat64())
			}
		}
	}
	var share [classes]float64
	total := 0.0
	for l := range classes {
		at := float64(l) / (classes - 1)
		if reversed {
			at = 1 - at
		}
		share[l] = math.Pow(300, -at)
		total += share[l]
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	d := &Data{Vectors: make([][][]float32, 2)}
	for i := range n {
		l := i
		if i >= classes {
			l = 0
			for u := rng.Float64() * total; l < classes-1 && u >= share[l]; l++ {
				u -= share[l]
			}
		}
		d.Labels = append(d.Labels, []uint32{uint32(l)})
		for t := range dims {
			x := make([]float32, dims[t])
			for j := range x {
				x[j] = float32(centre[t][l][j] + noise[t]*rng.NormFloat64())
			}
			d.Vectors[t] = append(d.Vectors[t], x)
		}
	}
	return d
}
