package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// BenchmarkSolve measures solving for the projection of one modality from its
// statistics.
func BenchmarkSolve(b *testing.B) {
	for _, k := range []int{800, 2000, 4000} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			const q, rows = 128, 512
			rng := rand.New(rand.NewPCG(43, 44))
			s := &Statistics{bits: q, parts: []part{{name: "x", k: k, a: make([]float64, k*k), b: make([]float64, q*k)}}}
			phi, h := make([]float32, rows*k), make([]float32, rows*q)
			for i := range phi {
				phi[i] = rng.Float32()
			}
			for i := range h {
				h[i] = float32(rng.IntN(2)*2 - 1)
			}
			s.add(0, dense.Of(rows, k, phi), teaching{h: h}, workerCount())
			for b.Loop() {
				if _, _, err := s.solve(0, 1e-2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
