package rotate

import (
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

var dims = []int{1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 100, 127, 128, 129, 255, 300, 384, 500, 511, 512, 768,
	1000, 1023, 1024, 1536}

func gaussian(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func dot(x, y []float32) (sum float64) {
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

// The map is linear and keeps inner products, so it is orthogonal.
func TestRotationIsOrthogonal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, d := range dims {
		r := New(d, uint64(d))
		for range 10 {
			x, y := gaussian(rng, d), gaussian(rng, d)
			sum := make([]float32, d)
			for i := range x {
				sum[i] = x[i] + 3*y[i]
			}
			xx, yy, xy := dot(x, x), dot(y, y), dot(x, y)
			r.Apply(x)
			r.Apply(y)
			r.Apply(sum)
			scale := math.Sqrt(xx * yy)
			for _, c := range []struct {
				what      string
				got, want float64
			}{{"|x|^2", dot(x, x) / xx, 1}, {"|y|^2", dot(y, y) / yy, 1},
				{"x.y", dot(x, y) / scale, xy / scale}} {
				if !(math.Abs(c.got-c.want) <= 1e-5) {
					t.Errorf("%d dimensions: %s is %v after the rotation, %v before", d, c.what, c.got,
						c.want)
				}
			}
			for i := range sum {
				if math.Abs(float64(sum[i]-x[i]-3*y[i])) > 1e-5*(1+math.Sqrt(xx+9*yy)) {
					t.Fatalf("%d dimensions: the map is not linear", d)
				}
			}
		}
	}
}

// The transform against its definition: element (i, j) of the matrix is -1 to the power of the number
// of bits that i and j have in common (Sylvester's construction).
func TestHadamard(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := 1; n <= 2048; n *= 2 {
		x := gaussian(rng, n)
		got := slices.Clone(x)
		hadamard(got)
		for _, i := range []int{0, 1, n / 3, n / 2, n - 1} {
			i = min(i, n-1)
			want := 0.0
			for j, v := range x {
				want += float64(1-2*(bits.OnesCount(uint(i&j))%2)) * float64(v)
			}
			if math.Abs(float64(got[i])-want) > 1e-5*float64(n) {
				t.Errorf("n = %d: element %d is %v, by the definition %v", n, i, got[i], want)
			}
		}
	}
}

// A unit vector has no large coordinate after the rotation, whichever it is: its signs then tell of
// all coordinates. With g normal and d dimensions a coordinate of more than 6/sqrt(d) has a
// probability of 2e-9.
func TestRotationSpreads(t *testing.T) {
	for _, d := range []int{128, 300, 384, 500, 504, 511, 768, 1024, 1100} {
		most := 0.0
		for seed := range uint64(4) {
			r := New(d, seed)
			for _, i := range []int{0, 1, d / 3, d / 2, d - 2, d - 1} {
				x := make([]float32, d)
				x[i] = 1
				r.Apply(x)
				for _, v := range x {
					most = max(most, math.Abs(float64(v)))
				}
			}
		}
		if limit := 7 / math.Sqrt(float64(d)); most > limit {
			t.Errorf("%d dimensions: a coordinate of %.3f, more than %.3f", d, most, limit)
		}
	}
}

// Stored models depend on these bits.
func TestRotationIsPinned(t *testing.T) {
	for _, c := range []struct {
		dim  int
		want uint32
	}{{1, 0x2c876448}, {8, 0x1dd3646e}, {300, 0x1e6a635d}, {1024, 0xc1357686}} {
		x := make([]float32, c.dim)
		for i := range x {
			x[i] = float32(i%17) - 7.25
		}
		New(c.dim, 42).Apply(x)
		sum := crc32.NewIEEE()
		for _, v := range x {
			b := math.Float32bits(v)
			sum.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
		}
		if got := sum.Sum32(); got != c.want {
			t.Errorf("%d dimensions: the rotated numbers have the checksum %#x, they had %#x", c.dim, got,
				c.want)
		}
	}
}

func TestRotationAllocatesNothing(t *testing.T) {
	r, x := New(384, 1), make([]float32, 384)
	if n := testing.AllocsPerRun(10, func() { r.Apply(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkApply(b *testing.B) {
	for _, d := range []int{128, 384, 768, 1024, 1536} {
		b.Run(fmt.Sprintf("d=%d", d), func(b *testing.B) {
			r, x := New(d, 1), gaussian(rand.New(rand.NewPCG(5, 6)), d)
			for b.Loop() {
				r.Apply(x)
			}
		})
	}
}
