package main

import (
	"bytes"
	"image"
	"math"
	"testing"
)

func TestPictureFeatures(t *testing.T) {
	d := dataForTest(t)
	features, err := allPictureFeatures(t.Context(), d.pictures)
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string][]float32)
	for i, f := range features {
		if len(f) != pictureDim {
			t.Fatalf("%d numbers, want %d", len(f), pictureDim)
		}
		if n := dot(f, f); math.Abs(n-1) > 1e-5 {
			t.Errorf("%s has squared length %v", d.items[i].name, n)
		}
		named[d.items[i].name] = f
	}
	// The pair on the left must look more alike than the pair on the right.
	for _, test := range [][4]string{
		{"grinning face", "smiling face with smiling eyes", "grinning face", "red apple"}, // both
		{"red heart", "blue heart", "red heart", "trophy"},                                // shape
		{"red heart", "red apple", "blue heart", "red apple"},                             // colour
		{"one o’clock", "five o’clock", "one o’clock", "hamburger"},
	} {
		for _, name := range test {
			if named[name] == nil {
				t.Fatalf("no emoji is called %q", name)
			}
		}
		near, far := dot(named[test[0]], named[test[1]]), dot(named[test[2]], named[test[3]])
		if near <= far {
			t.Errorf("%s ~ %s: %.3f, not above %s ~ %s: %.3f", test[0], test[1], near, test[2], test[3], far)
		}
	}
}

func TestPictureFeaturesOfNothing(t *testing.T) {
	for _, x := range pictureFeatures(image.NewRGBA(image.Rect(0, 0, pictureSide, pictureSide))) {
		if x != 0 {
			t.Fatalf("an empty picture has a feature of %v", x)
		}
	}
}

func TestHueOf(t *testing.T) {
	for _, test := range []struct{ r, g, b, want float64 }{
		{1, 0, 0, 0}, {1, 1, 0, 1. / 6}, {0, 1, 0, 2. / 6}, {0, 1, 1, 3. / 6}, {0, 0, 1, 4. / 6},
		{1, 0, 1, 5. / 6},
		{0.5, 0.25, 0.25, 0},
	} {
		if got := hueOf(test.r, test.g, test.b); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("hueOf(%v, %v, %v) = %v, want %v", test.r, test.g, test.b, got, test.want)
		}
	}
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func BenchmarkPictureFeatures(b *testing.B) {
	d, err := testDataset()
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		pictureFeatures(d.pictures[i%len(d.pictures)])
	}
}

func TestRender(t *testing.T) {
	parsed, err := parseFont()
	if err != nil {
		t.Fatal(err)
	}
	r := newRenderer(parsed)
	for _, test := range []struct {
		name, char string
		drawn      bool
	}{
		{"one character", "😀", true},
		{"with a variation selector", "❤️", true},
		{"a sequence with joiners", "👩‍🚀", true},
		{"a family", "👨‍👩‍👧‍👦", true},
		{"a flag of two letters", "🇫🇷", true},
		{"a flag of tags", "🏴󠁧󠁢󠁷󠁬󠁳󠁿", true},
		{"a keycap", "5️⃣", true},
		{"a letter", "a", false},
		{"two emoji", "😀😀", false},
		{"two emoji that no font joins", "😀\u200d🚀", false},
		{"a character that the font lacks", "\u26ec", false},
		{"nothing", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := r.render(test.char)
			if err != nil {
				t.Fatal(err)
			}
			if (p != nil) != test.drawn {
				t.Fatalf("drawn: %v, want %v", p != nil, test.drawn)
			}
			if p != nil && opaqueShare(p) < 0.1 {
				t.Errorf("%.0f %% of the picture is opaque", 100*opaqueShare(p))
			}
		})
	}
}

func opaqueShare(p *image.RGBA) float64 {
	var sum int
	for i := 3; i < len(p.Pix); i += 4 {
		sum += int(p.Pix[i])
	}
	return float64(sum) / 255 / (pictureSide * pictureSide)
}

// Goroutines share the parsed font. Their pictures must not depend on that.
func TestRenderAllDrawsLikeOneRenderer(t *testing.T) {
	d := dataForTest(t)
	parsed, err := parseFont()
	if err != nil {
		t.Fatal(err)
	}
	r := newRenderer(parsed)
	for i := 0; i < len(d.items); i += 29 {
		want, err := r.render(d.items[i].char)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(d.pictures[i].Pix, want.Pix) {
			t.Errorf("%s differs", d.items[i].name)
		}
	}
}
