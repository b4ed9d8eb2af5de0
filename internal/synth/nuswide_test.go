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

func TestNUSWideFeatures(t *testing.T) {
	const from, to = 100, 400
	for _, noise := range []float64{0, DefaultNUSWideNoise, 1} {
		g := newNUSWide(t, 1, noise)
		data := g.Data(from, to)
		words, zeros := 0, 0
		seen := map[int]bool{}
		for i := range to - from {
			image, text := data.Vectors[0][i], data.Vectors[1][i]
			sum := 0.0
			for _, v := range image {
				if v < 0 || v-v != 0 {
					t.Fatalf("noise %v: image of item %d has %v", noise, i, v)
				}
				if v == 0 {
					zeros++
				}
				sum += float64(v)
			}
			if len(image) != NUSWideImage || math.Abs(sum-1) > 1e-4 {
				t.Fatalf("noise %v: image of item %d: %d numbers, sum %v", noise, i, len(image), sum)
			}
			dense := make([]float32, NUSWideText)
			row, values := g.AppendText(nil, nil, from+i)
			for k, w := range row {
				if k > 0 && w <= row[k-1] {
					t.Fatalf("columns %v", row)
				}
				dense[w] = values[k]
				if dense[w] < 1 || dense[w] != float32(math.Trunc(float64(dense[w]))) {
					t.Fatalf("a count of %v", dense[w])
				}
				seen[int(w)] = true
			}
			if !slices.Equal(dense, text) {
				t.Fatalf("noise %v: item %d: dense and sparse text differ", noise, i)
			}
			if len(row) < NUSWideLeastWords || len(row) > NUSWideMostWords {
				t.Fatalf("noise %v: text of item %d has %d words", noise, i, len(row))
			}
			words += len(row)
		}
		if mean := float64(words) / (to - from); mean < 33 || mean > 37 {
			t.Errorf("noise %v: %.1f words a text", noise, mean)
		}
		if zeros > 0 || len(seen) < 800 {
			t.Errorf("noise %v: %d zeros in images, %d words in use", noise, zeros, len(seen))
		}
	}
}

func TestNUSWideLabels(t *testing.T) {
	const n = 20_000
	g := newNUSWide(t, 3, DefaultNUSWideNoise)
	var counts [NUSWideLabels][NUSWideLabels]float64
	total := 0
	for i := range n {
		labels := g.AppendLabels(nil, i)
		if len(labels) == 0 || !slices.IsSorted(labels) ||
			len(slices.Compact(slices.Clone(labels))) != len(labels) ||
			labels[len(labels)-1] >= NUSWideLabels {
			t.Fatalf("item %d: labels %v", i, labels)
		}
		total += len(labels)
		for _, a := range labels {
			for _, b := range labels {
				counts[a][b]++
			}
		}
	}
	// The frequencies are skewed: they fall from two items in five to one in twenty.
	frequency := func(l int) float64 { return counts[l][l] / n }
	for l := 1; l < NUSWideLabels; l++ {
		if frequency(l) > frequency(l-1)+.01 {
			t.Errorf("label %d is in %.3f of the items, label %d in %.3f", l-1, frequency(l-1), l,
				frequency(l))
		}
	}
	mean := float64(total) / n
	t.Logf("%.2f labels an item, frequencies %.3f to %.3f", mean, frequency(0), frequency(9))
	if frequency(0) < .38 || frequency(0) > .46 || frequency(9) < .04 || frequency(9) > .08 || mean < 1.6 ||
		mean > 2.2 {
		t.Errorf("%.2f labels an item, frequencies %.3f to %.3f", mean, frequency(0), frequency(9))
	}
	// The labels are correlated. lift is how much more often than by chance two labels
	// meet.
	lift := func(a, b int) float64 { return counts[a][b] / n / frequency(a) / frequency(b) }
	t.Logf("sky and clouds %.2f, water and lake %.2f, sky and people %.2f", lift(0, 1), lift(3, 9),
		lift(0, 2))
	if lift(0, 1) < 1.5 || lift(3, 9) < 1.5 || lift(0, 2) > .8 {
		t.Errorf("sky and clouds %.2f, water and lake %.2f, sky and people %.2f", lift(0, 1), lift(3, 9),
			lift(0, 2))
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
