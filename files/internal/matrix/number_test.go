package matrix

import (
	"math"
	"testing"
)

// TestFloat16 compares every pattern with the definition in IEEE 754.
func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		sign, exponent, fraction := 1.0, h>>10&31, float64(h&1023)
		if h >= 1<<15 {
			sign = -1
		}
		var want float64
		switch {
		case exponent == 31 && fraction == 0:
			want = sign * math.Inf(1)
		case exponent == 31:
			want = math.NaN()
		case exponent == 0:
			want = math.Copysign(math.Ldexp(fraction/1024, -14), sign)
		default:
			want = sign * math.Ldexp(1+fraction/1024, exponent-15)
		}
		got := float64(float16(uint16(h)))
		if math.IsNaN(want) {
			if !math.IsNaN(got) {
				t.Errorf("%04x is %v, want NaN", h, got)
			}
			continue
		}
		if got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%04x is %v, want %v", h, got, want)
		}
	}
}
