package dense

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/internal/simd"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// benchSets reports the speed of f with each set in assembly, and of gonum's way to the
// same result. gonum takes all cores: compare with -cpu 1.
func benchSets(b *testing.B, name string, operations float64, f, gonum func()) {
	run := func(kind string, f func()) {
		b.Run(name+"/"+kind, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(operations*float64(b.N)/b.Elapsed().Seconds()*1e-9, "GFLOP/s")
		})
	}
	for _, k := range sets {
		if k != simd.Generic || len(sets) == 1 {
			useSet(b, k)
			run(k.String(), f)
		}
	}
	if gonum != nil {
		run("gonum", gonum)
	}
}

func BenchmarkMulNT(b *testing.B) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, s := range [][3]int{{4096, 500, 800}, {4096, 128, 800}, {512, 500, 800}, {64, 500, 800},
		{64, 128, 800}, {1, 128, 800}, {1, 500, 800}, {1, 1000, 800}} {
		m, d, n := s[0], s[1], s[2]
		x, y := random[float32](rng, m, d, 0), random[float32](rng, n, d, 0)
		c, packed := Of(m, n, make([]float32, m*n)), Pack(y)
		benchSets(b, fmt.Sprintf("%dx%dx%d", m, d, n), 2*float64(m*d*n), func() {
			MulNT(c, x, packed)
		}, func() {
			if m == 1 {
				blas32.Gemv(blas.NoTrans, 1, blas32.General(y), blas32.Vector{N: d, Inc: 1, Data: x.Data}, 0,
					blas32.Vector{N: n, Inc: 1, Data: c.Data})
				return
			}
			blas32.Gemm(blas.NoTrans, blas.Trans, 1, blas32.General(x), blas32.General(y), 0,
				blas32.General(c))
		})
	}
}

// BenchmarkMulNT64 measures projections: features in float32, the rest in float64.
func BenchmarkMulNT64(b *testing.B) {
	rng := rand.New(rand.NewPCG(27, 28))
	for _, s := range [][3]int{{4096, 800, 128}, {1, 800, 128}} {
		m, d, n := s[0], s[1], s[2]
		x, y := random[float32](rng, m, d, 0), random[float64](rng, n, d, 0)
		c, packed := Of(m, n, make([]float64, m*n)), Pack(y)
		wide := Of(m, d, make([]float64, m*d))
		convert(wide.Data, x.Data[:m*d])
		benchSets(b, fmt.Sprintf("%dx%dx%d", m, d, n), 2*float64(m*d*n), func() {
			MulNT(c, x, packed)
		}, func() {
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, general(wide), general(y), 0, general(c))
		})
	}
}

// BenchmarkSparseMulNT counts only operations with nonzero elements.
func BenchmarkSparseMulNT(b *testing.B) {
	rng := rand.New(rand.NewPCG(29, 30))
	const d, k, nonzero = 1000, 800, 35
	packed := Pack(random[float32](rng, k, d, 0))
	for _, m := range []int{512, 1} {
		s := Sparse{Rows: m, Cols: d, Start: []int{0}}
		for range m {
			for range nonzero {
				s.Index = append(s.Index, uint32(rng.IntN(d)))
				s.Value = append(s.Value, 1)
			}
			s.Start = append(s.Start, len(s.Index))
		}
		c := Of(m, k, make([]float32, m*k))
		benchSets(b, fmt.Sprintf("%dx%dof%dx%d", m, nonzero, d, k), 2*float64(m*nonzero*k), func() {
			SparseMulNT(c, s, packed)
		}, nil)
	}
}

func BenchmarkAddGram(b *testing.B) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, s := range [][2]int{{4096, 800}, {512, 800}, {256, 4000}} {
		n, k := s[0], s[1]
		x, c := random[float64](rng, n, k, 0), Of(k, k, make([]float64, k*k))
		narrow := Of(n, k, make([]float32, n*k))
		convert(narrow.Data, x.Data[:n*k])
		operations := float64(n) * float64(k) * float64(k+1)
		benchSets(b, fmt.Sprintf("%dx%d", n, k), operations, func() { AddGram(c, narrow, 1) }, nil)
		benchSets(b, fmt.Sprintf("%dx%dof64", n, k), operations, func() { AddGram(c, x, 1) }, func() {
			// Strips of general products, as gonum's Dsyrk has no blocking.
			for i := 0; i < k; i += 64 {
				end := min(i+64, k)
				left, right, sum := general(x), general(x), general(c)
				left.Cols, left.Data = end-i, x.Data[i:]
				right.Cols = end
				sum.Rows, sum.Cols, sum.Data = end-i, end, c.Data[i*k:]
				blas64.Gemm(blas.Trans, blas.NoTrans, 1, left, right, 1, sum)
			}
		})
	}
}

func BenchmarkAddTN(b *testing.B) {
	rng := rand.New(rand.NewPCG(33, 34))
	const n, k, q = 4096, 800, 128
	x, h, c := random[float64](rng, n, k, 0), random[float64](rng, n, q, 0), Of(q, k, make([]float64, q*k))
	narrow := Of(n, k, make([]float32, n*k))
	convert(narrow.Data, x.Data[:n*k])
	benchSets(b, fmt.Sprintf("%dx%dx%d", n, k, q), 2*n*k*q, func() { AddTN(c, h, narrow, 1) }, func() {
		blas64.Gemm(blas.Trans, blas.NoTrans, 1, general(h), general(x), 1, general(c))
	})
}

func BenchmarkGaussian(b *testing.B) {
	rng := rand.New(rand.NewPCG(35, 36))
	const k = 800
	dots, dst := make([]float32, k), make([]float32, k)
	norms := make([]float32, k)
	for i := range norms {
		norms[i] = rng.Float32() * 20
	}
	for _, set := range sets {
		b.Run(set.String(), func(b *testing.B) {
			useSet(b, set)
			for b.Loop() {
				Gaussian(dst, dots, 1, norms, 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/k, "ns/element")
		})
	}
}

// BenchmarkEncode measures encoding: the features of m items in two modalities, and
// their projections.
func BenchmarkEncode(b *testing.B) {
	rng := rand.New(rand.NewPCG(37, 38))
	const k, q = 800, 128
	for _, s := range [][3]int{{1, 128, 128}, {64, 128, 128}, {1, 500, 1000}, {64, 500, 1000}} {
		m := s[0]
		var x, y []Matrix[float32]
		var right []*Packed[float32]
		var p []*Packed[float64]
		for t := range 2 {
			x = append(x, random[float32](rng, m, s[1+t], 0))
			y = append(y, random[float32](rng, k, s[1+t], 0))
			right = append(right, Pack(y[t]))
			p = append(p, Pack(random[float64](rng, q, k, 0)))
		}
		phi, z := Of(m, k, make([]float32, m*k)), Of(m, q, make([]float64, m*q))
		norms := make([]float32, k)
		for _, set := range sets {
			b.Run(fmt.Sprintf("%dx%d+%d/%s", m, s[1], s[2], set), func(b *testing.B) {
				useSet(b, set)
				for b.Loop() {
					for t := range 2 {
						MulNT(phi, x[t], right[t])
						for i := range m {
							Gaussian(phi.row(i), phi.row(i), 50, norms, 0.01)
						}
						MulNT(z, phi, p[t])
					}
				}
				b.ReportMetric(float64(b.N)*float64(m)/b.Elapsed().Seconds(), "items/s")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(m), "us/item")
			})
		}
	}
}
