package dense

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// ulps returns the error of got in units of the last place of want.
func ulps(got float32, want float64) float64 {
	exponent := math.Ilogb(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, exponent-23)
}

// TestGaussianExp checks e^-d over the whole range of d.
func TestGaussianExp(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		const n = 1000 // and a tail in all sets
		dst, norms, dots := make([]float32, n), make([]float32, n), make([]float32, n)
		worst, at := 0.0, float32(0)
		last := math.Float32bits(-expZero)
		step := uint32(1009)
		if effort.Race {
			step *= 20
		}
		for bits := uint32(0); bits <= last; {
			for i := range norms {
				norms[i] = math.Float32frombits(min(bits, last))
				bits += step
			}
			Gaussian(dst, dots, 0, norms, 1)
			for i, d := range norms {
				if e := ulps(dst[i], math.Exp(-float64(d))); e > worst {
					worst, at = e, d
				}
			}
		}
		t.Logf("the largest error is %.3f ulp, at %v", worst, -at)
		if worst > 1.5 {
			t.Errorf("e^%v is off by %v ulp", -at, worst)
		}
	})
}

func TestGaussianSpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	least := math.Float32frombits(math.Float32bits(-expZero)) // the last d with a result above 0
	eachSet(t, func(t *testing.T) {
		for _, c := range []struct {
			dot, norm, y, gamma float32
			want                float64
		}{
			{0, 0, 0, 1, 1},
			{0, float32(math.Copysign(0, -1)), float32(math.Copysign(0, -1)), 1, 1},
			{3, 2, 2, 1, 1}, // below 0 by rounding
			{1, 2, 2, 1, math.Exp(-2)},
			{1, 2, 2, 0.25, math.Exp(-0.5)},
			{0, 0, 1e-45, 1, 1},
			{0, 0, least, 1, math.Exp(-float64(least))},
			{0, 0, math.Nextafter32(least, inf), 1, 0},
			{0, 0, 88, 1, 0}, {0, 0, 100, 1, 0}, {0, 0, 103.97, 1, 0}, {0, 0, 110, 1, 0},
			{0, 0, 1e10, 1, 0}, {0, 0, math.MaxFloat32, 1, 0}, {0, 0, math.MaxFloat32, 1e30, 0},
			{0, 0, inf, 1, 0}, {0, inf, 1, 1, 0}, {-inf, 1, 1, 1, 0}, {inf, 1, 1, 1, 1},
			{nan, 1, 1, 1, math.NaN()}, {1, nan, 1, 1, math.NaN()}, {1, 1, nan, 1, math.NaN()},
			{inf, inf, 1, 1, math.NaN()},
		} {
			for n := 1; n <= 40; n++ {
				dst, dots, norms := make([]float32, n+1), make([]float32, n), make([]float32, n)
				dst[n] = 7
				for i := range norms {
					dots[i], norms[i] = c.dot, c.y
				}
				Gaussian(dst[:n], dots, c.norm, norms, c.gamma)
				for i, v := range dst[:n] {
					bad := ulps(v, c.want) > 1.5
					switch {
					case math.IsNaN(c.want):
						bad = v == v
					case c.want == 0:
						bad = math.Float32bits(v) != 0
					}
					if bad {
						t.Fatalf("%+v: element %d of %d is %v", c, i, n, v)
					}
				}
				if dst[n] != 7 {
					t.Fatalf("%d elements: wrote another", n)
				}
			}
		}
	})
}

// TestGaussianAlone: an element does not depend on its position, and dst may be dots.
func TestGaussianAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	dots, norms := random[float32](rng, 1, 100, 0).Data, random[float32](rng, 1, 100, 0).Data
	eachSet(t, func(t *testing.T) {
		all := append([]float32(nil), dots...)
		Gaussian(all, all, 3, norms, 2)
		for i, want := range all {
			var one [1]float32
			Gaussian(one[:], dots[i:i+1], 3, norms[i:i+1], 2)
			if one[0] != want {
				t.Fatalf("element %d is %v among others and %v alone", i, want, one[0])
			}
		}
	})
}

// fma32 equals arithmetic with all digits that is rounded once, also where a float64 lies in the middle
// between two float32, and for tiny results.
func TestFMA32(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(float64(v)) }
	number := func(exponents int) float32 {
		v := math.Float32frombits(rng.Uint32()&0x807fffff | uint32(127-exponents/2+rng.IntN(exponents))<<23)
		if rng.IntN(2) == 0 { // few digits: sums are between two others
			v = math.Float32frombits(math.Float32bits(v) &^ 0xfff)
		}
		return v
	}
	for i := range 100_000 {
		x, y, z := number(4), number(4), number(60)
		if i%4 == 0 { // the least numbers
			x, z = x*0x1p-70, z*0x1p-126
			y *= 0x1p-70
		}
		sum := new(big.Float).SetPrec(600).Mul(exact(x), exact(y))
		want, _ := sum.Add(sum, exact(z)).Float32()
		if got := fma32(x, y, z); got != want {
			t.Fatalf("%x * %x + %x = %x, not %x", x, y, z, want, got)
		}
	}
	infinite, most := float32(math.Inf(1)), float32(math.MaxFloat32)
	for _, c := range [][4]float32{{infinite, 1, 0, infinite}, {-1, infinite, most, -infinite},
		{most, 2, 0, infinite}, {most, 1, 0x1p102, most}, {most, 1, 0x1p103, infinite},
		{1, 1, infinite, infinite}} {
		if got := fma32(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%x * %x + %x = %x, not %x", c[0], c[1], c[2], c[3], got)
		}
	}
	if got := fma32(infinite, 0, 1); got == got {
		t.Errorf("infinity times 0 is %x", got)
	}
}
