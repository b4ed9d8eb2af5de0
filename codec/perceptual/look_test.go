package perceptual

import (
	"image"
	"image/color"
	"math"
	"testing"
)

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// A scene that is scaled or recoded looks more like itself than like any other scene.
func TestLookOfCopies(t *testing.T) {
	var all [][]float32
	const scenes = 20
	for seed := range uint64(scenes) {
		all = append(all, Look(scene(seed, 320, 240)))
	}
	for seed := range uint64(scenes) {
		for name, m := range map[string]image.Image{"half": scene(seed, 160, 120),
			"wide": scene(seed, 400, 150), "recoded": recoded(t, scene(seed, 320, 240), 40),
			"tiny": scene(seed, 60, 45)} {
			x := Look(m)
			for i, other := range all {
				if c := cosine(x, other); (i == int(seed)) != (c > .9) {
					t.Errorf("%s: scene %d like scene %d: %.3f", name, seed, i, c)
				}
			}
		}
	}
}

// Colours and shapes both count: of one shape the same colour is nearer, and of one colour the same shape.
func TestLookSeesColoursAndShapes(t *testing.T) {
	draw := func(c color.NRGBA, in func(x, y int) bool) []float32 {
		m := image.NewNRGBA(image.Rect(0, 0, 200, 200))
		for y := range 200 {
			for x := range 200 {
				m.SetNRGBA(x, y, color.NRGBA{240, 240, 240, 255})
				if in(x, y) {
					m.SetNRGBA(x, y, c)
				}
			}
		}
		return Look(m)
	}
	disc := func(x, y int) bool { return (x-100)*(x-100)+(y-100)*(y-100) < 70*70 }
	bars := func(x, y int) bool { return x/25%2 == 0 }
	red, dark, blue := color.NRGBA{200, 30, 30, 255}, color.NRGBA{180, 40, 40, 255},
		color.NRGBA{30, 30, 200, 255}
	x := draw(red, disc)
	if same, colour, shape := cosine(x, draw(dark, disc)), cosine(x, draw(blue, disc)),
		cosine(x, draw(red, bars)); same < colour || colour < shape || same < .9 || shape > .7 {
		t.Errorf("a red disc: dark red %.3f, blue %.3f, red bars %.3f", same, colour, shape)
	}
}

// A vector has length 1, or less without edges; that of no pixels is zero.
func TestLengthsOfLook(t *testing.T) {
	for name, m := range map[string]image.Image{"scene": scene(3, 50, 70), "dot": scene(3, 1, 1),
		"black": image.NewNRGBA(image.Rect(0, 0, 9, 9)), "white": image.NewUniform(color.White),
		"empty": image.NewGray(image.Rectangle{})} {
		if name == "white" {
			white := image.NewGray(image.Rect(5, 5, 20, 20))
			for i := range white.Pix {
				white.Pix[i] = 255
			}
			m = white
		}
		x := Look(m)
		var square float64
		for _, v := range x {
			square += float64(v) * float64(v)
		}
		want := 1.0
		if name == "empty" {
			want = 0
		}
		if len(x) != LookDim || name == "scene" && math.Abs(square-want) > 1e-5 || square > 1.00001 ||
			(square == 0) != (want == 0) {
			t.Errorf("%s: %d dimensions, length %v", name, len(x), math.Sqrt(square))
		}
	}
}
