package dense

import (
	"fmt"
	"math"
)

// expZero is the exponent below which Gaussian is 0. e^-87.33 is the least number that
// float32 holds with all its digits, and arithmetic with smaller ones is slow.
const expZero = -87.33

// Gaussian writes the Gaussian kernel of a vector x and n vectors y_j to dst,
//
//	dst[j] = exp(-gamma max(0, |x|^2 + |y_j|^2 - 2 x.y_j)),
//
// from norm = |x|^2, norms[j] = |y_j|^2 and dots[j] = x.y_j. gamma is finite and
// positive. dots and norms must be as long as dst; dst may be dots. The difference
// loses digits if the norms are much larger than it: centre the vectors. The
// exponential is within 2 ulp. It is 0 where it would be less than e^-87.33 = 1.2e-38,
// and so for infinite distances. NaNs propagate.
//
// An element depends on its own norm and dot alone, not on its position or the length.
func Gaussian(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	if len(dots) != len(dst) || len(norms) != len(dst) {
		panic(fmt.Sprintf("dense: %d dots and %d norms for %d kernels", len(dots), len(norms), len(dst)))
	}
	if len(dst) > 0 {
		gaussianBy(active, dst, dots, norm, norms, gamma)
	}
}

func gaussianGeneric(dst, dots []float32, norm float32, norms []float32, gamma float32) {
	for j, dot := range dots {
		// A builtin max keeps NaN; 2*dot is exact, so it does not matter whether the
		// compiler fuses the subtraction.
		d := max(0, norm+norms[j]-2*dot)
		dst[j] = exp(-gamma * d)
	}
}

// exp returns e^x for x <= 0.
func exp(x float32) float32 {
	if x < expZero {
		return 0
	}
	return float32(math.Exp(float64(x)))
}
