package main

import (
	"bytes"
	"image"
	"testing"
)

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
