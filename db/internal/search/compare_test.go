package search

import (
	"math"
	"testing"

	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/model"
)

// The dense and the sparse form of the same vectors have the same distance.
func TestSquaredDistance(t *testing.T) {
	rng := seed.Rand(t, 3, 4)
	draw := func() (model.Vector, model.Vector) {
		dense, sparse := model.Dense(make([]float32, 12)), model.Sparse(nil, nil)
		for j := range dense.Value {
			if rng.IntN(3) == 0 {
				dense.Value[j] = rng.Float32()
				sparse.Index, sparse.Value = append(sparse.Index, uint32(j)),
					append(sparse.Value, dense.Value[j])
			}
		}
		return dense, sparse
	}
	for range 200 {
		a, as := draw()
		b, bs := draw()
		if x, y := squaredDistance(a, b), squaredDistance(as, bs); math.Abs(x-y) > 1e-12 {
			t.Fatalf("%v and %v: %g, %g sparse", a, b, x, y)
		}
	}
}
