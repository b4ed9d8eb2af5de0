package synth

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

func newNUSWide(t testing.TB, seed uint64, noise float64) *NUSWide {
	t.Helper()
	g, err := NewNUSWide(seed, noise)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Any part is the same if another generator makes it in another order. Another seed
// gives other items.
func TestNUSWideIsDetermined(t *testing.T) {
	g, again, other := newNUSWide(t, 5, .8), newNUSWide(t, 5, .8), newNUSWide(t, 6, .8)
	all := g.Data(0, 60)
	const last = 1 << 40
	if far := again.Data(last, last+1); !reflect.DeepEqual(far, g.Data(last, last+1)) {
		t.Error("a far item differs")
	}
	for i := 59; i >= 0; i-- {
		if one := again.Data(i, i+1); !reflect.DeepEqual(one, all.Slice(i, i+1)) {
			t.Fatalf("item %d differs", i)
		}
		if one := other.Data(i, i+1); reflect.DeepEqual(one.Vectors, all.Slice(i, i+1).Vectors) {
			t.Fatalf("item %d is that of another seed", i)
		}
		if i > 0 && reflect.DeepEqual(all.Item(i), all.Item(i-1)) {
			t.Fatalf("item %d is the one before", i)
		}
	}
	// The labels do not depend on the noise.
	if clear := newNUSWide(t, 5, 0).Data(0, 60); !reflect.DeepEqual(clear.Labels, all.Labels) {
		t.Error("other noise, other labels")
	}
}

// Without noise, items of one label look alike. With noise 1 they do not look alike at
// all.
func TestNUSWideNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		return ab / math.Sqrt(aa*bb)
	}
	// contrast is how much more alike items with the same labels are than other items.
	contrast := func(noise float64, modality int) float64 {
		d := newNUSWide(t, 4, noise).Data(0, 200)
		var same, other, sames, others float64
		for i := range d.Items() {
			for j := range i {
				c := cosine(d.Vectors[modality][i], d.Vectors[modality][j])
				if slices.Equal(d.Labels[i], d.Labels[j]) {
					same, sames = same+c, sames+1
				} else {
					other, others = other+c, others+1
				}
			}
		}
		return same/sames - other/others
	}
	for modality := range 2 {
		clear, usual, nothing := contrast(0, modality), contrast(DefaultNUSWideNoise, modality),
			contrast(1, modality)
		t.Logf("modality %d: %.3f, %.3f, %.3f", modality, clear, usual, nothing)
		if clear < .05 || usual > .3*clear || usual < .003 || math.Abs(nothing) > .002 {
			t.Errorf("modality %d: contrast %.3f without noise, %.3f with the usual one, %.3f with noise alone", modality, clear, usual, nothing)
		}
	}
	for _, bad := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := NewNUSWide(1, bad); err == nil {
			t.Errorf("noise %v passes", bad)
		}
	}
}

func BenchmarkNUSWide(b *testing.B) {
	g := newNUSWide(b, 1, DefaultNUSWideNoise)
	image, text := make([]float32, NUSWideImage), make([]float32, NUSWideText)
	for i := 0; b.Loop(); i++ {
		g.Image(image, i)
		g.Text(text, i)
	}
}
