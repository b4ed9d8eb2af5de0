package perceptual

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"slices"
	"testing"
)

// greyOf draws a grey picture.
func greyOf(width, height int, at func(x, y int) float64) *image.Gray {
	m := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.SetGray(x, y, color.Gray{uint8(at(x, y))})
		}
	}
	return m
}

// The pHash of a picture of 32 x 32 pixels, which is not scaled, is what the definition says.
func TestPHashByDefinition(t *testing.T) {
	full := scene(5, 32, 32)
	m := greyOf(32, 32, func(x, y int) float64 { return float64(full.NRGBAAt(x, y).G) })
	var low []float64
	for v := range 8 {
		for u := range 8 {
			sum := 0.
			for y := range 32 {
				for x := range 32 {
					sum += float64(m.GrayAt(x, y).Y) * math.Cos(math.Pi/64*float64(v*(2*y+1))) *
						math.Cos(math.Pi/64*float64(u*(2*x+1)))
				}
			}
			low = append(low, sum)
		}
	}
	sorted := slices.Sorted(slices.Values(low))
	want := make([]byte, 8)
	for i, x := range low {
		if x > (sorted[31]+sorted[32])/2 {
			want[i/8] |= 0x80 >> (i % 8)
		}
	}
	if got := PHash(m); !bytes.Equal(got, want) {
		t.Errorf("%x, by definition %x", got, want)
	}
}

// The dHash of a large picture is nearly that of the means of its parts.
func TestDHashByMeans(t *testing.T) {
	for seed := range uint64(8) {
		full := scene(seed, 9*12, 8*12)
		m := greyOf(9*12, 8*12, func(x, y int) float64 { return float64(full.NRGBAAt(x, y).G) })
		var parts [8][9]int
		for y := range 8 * 12 {
			for x := range 9 * 12 {
				parts[y/12][x/12] += int(m.GrayAt(x, y).Y)
			}
		}
		want := make([]byte, 8)
		for i := range 64 {
			if parts[i/8][i%8] < parts[i/8][i%8+1] {
				want[i/8] |= 0x80 >> (i % 8)
			}
		}
		if got := DHash(m); distance(got, want) > 6 {
			t.Errorf("picture %d: %x, by means %x", seed, got, want)
		}
	}
}

// A slope is brighter to the right everywhere, and its mirror nowhere.
func TestDHashOfASlope(t *testing.T) {
	up := greyOf(300, 100, func(x, _ int) float64 { return float64(x) / 2 })
	down := greyOf(300, 100, func(x, _ int) float64 { return 200 - float64(x)/2 })
	if a, b := DHash(up), DHash(down); !bytes.Equal(a, bytes.Repeat([]byte{255}, 8)) ||
		!bytes.Equal(b, make([]byte, 8)) {
		t.Errorf("%x and %x", a, b)
	}
}

// Pictures of one colour share a code, in whatever size.
func TestPicturesOfOneColour(t *testing.T) {
	for _, side := range []int{1, 31, 32, 200} {
		m := greyOf(side, side+3, func(_, _ int) float64 { return 137 })
		if code := PHash(m); !bytes.Equal(code, []byte{0x80, 0, 0, 0, 0, 0, 0, 0}) {
			t.Errorf("pHash of side %d: %x", side, code)
		}
		if code := DHash(m); !bytes.Equal(code, make([]byte, 8)) {
			t.Errorf("dHash of side %d: %x", side, code)
		}
	}
}
