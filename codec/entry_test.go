package codec

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func TestRowCodeRoundTrip(t *testing.T) {
	for _, r := range []RowCode{{}, {1, ProvenanceLabels, 2}, {math.MaxUint32, ProvenanceModality + 7, math.MaxUint32}} {
		got, err := DecodeRowCode(r.Append(nil))
		if err != nil || got != r {
			t.Errorf("%+v became %+v, %v", r, got, err)
		}
	}
	if _, err := DecodeRowCode(make([]byte, RowCodeBytes-1)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("short entry: %v", err)
	}
}

// Eight bits a dimension keep a cosine within half a percent of the true one.
func TestProjectionKeepsCosines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, q := range []int{8, 72, 128, 4096} {
		for range 50 {
			a, b := make([]float64, q), make([]float32, q)
			var ab, aa, bb float64
			for j := range a {
				a[j] = rng.NormFloat64() * 1e3
				b[j] = float32(rng.NormFloat64() + a[j]/1e3)
				ab += a[j] * float64(b[j])
				aa += a[j] * a[j]
				bb += float64(b[j]) * float64(b[j])
			}
			entry := AppendProjection(nil, a)
			if len(entry) != ProjectionBytes(q) {
				t.Fatalf("%d bits in %d bytes", q, len(entry))
			}
			got := float64(ProjectionDot(entry, b)) / math.Sqrt(bb)
			if want := ab / math.Sqrt(aa*bb); math.Abs(got-want) > .005 {
				t.Fatalf("%d bits: cosine %.4f, want %.4f", q, got, want)
			}
		}
	}
	for _, z := range []float64{0, math.NaN(), math.Inf(1)} {
		if got := ProjectionDot(AppendProjection(nil, []float64{z, 0, 0, 0, 0, 0, 0, 0}), make([]float32, 8)); got != 0 {
			t.Errorf("projection of %g: %g", z, got)
		}
	}
}

func BenchmarkProjectionDot(b *testing.B) {
	z := make([]float64, 64)
	y := make([]float32, 64)
	for j := range z {
		z[j] = float64(j) - 30
	}
	entry := AppendProjection(nil, z)
	for b.Loop() {
		ProjectionDot(entry, y)
	}
}
