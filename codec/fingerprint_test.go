package codec

import "testing"

func TestFingerprint(t *testing.T) {
	for _, c := range []struct {
		code Code
		want uint64
	}{
		{Code{0}, 0xe220a8397b1dcdaf}, // published first outputs of SplitMix64
		{Code{1234567}, 6457827717110365317},
		{Code{0, 0}, 0xa706dd2f4d197e6f},
		{Code{1, 2, 3}, 0xd0734750fde362b3},
		{Code{^uint64(0), ^uint64(0)}, 0x6309143e67a47936},
	} {
		if got := Fingerprint(c.code); got != c.want {
			t.Errorf("Fingerprint(%x) = %#x, not %#x", c.code, got, c.want)
		}
	}
	// One bit changes about half of the fingerprint, wherever it is.
	code := Code{1, 2}
	h := Code{Fingerprint(code)}
	for j := range 128 {
		code.Flip(j)
		changed := 0
		g := Code{Fingerprint(code)}
		for k := range 64 {
			if g.Bit(k) != h.Bit(k) {
				changed++
			}
		}
		if changed < 12 || changed > 52 {
			t.Errorf("bit %d changes %d bits", j, changed)
		}
		code.Flip(j)
	}
}
