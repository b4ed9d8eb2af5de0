package term

import "testing"

func TestSimilarity(t *testing.T) {
	for x, want := range map[float32]string{0: "0.000", 1: "1.000", -.25: "-0.250", .00123456: "0.00123",
		123456.7: "123456.703", 3.4028235e38: "3.402823e+38", -1e6: "-1000000"} {
		if got := Similarity(x); got != want {
			t.Errorf("%g is %q, want %q", x, got, want)
		}
	}
}
