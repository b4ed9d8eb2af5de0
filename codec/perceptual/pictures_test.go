package perceptual

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// scene draws a picture with soft and sharp parts; each seed another one. The same seed in another size is
// the same scene, scaled.
func scene(seed uint64, width, height int) *image.NRGBA {
	r := rand.New(rand.NewPCG(seed, 1))
	type blob struct{ x, y, size, red, green, blue float64 }
	blobs := make([]blob, 30)
	for i := range blobs {
		blobs[i] = blob{r.Float64(), r.Float64(), .03 + .2*r.Float64(), 200 * (r.Float64() - .5),
			200 * (r.Float64() - .5), 200 * (r.Float64() - .5)}
	}
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := [3]float64{128, 128, 128}
			for _, b := range blobs {
				dx, dy := (float64(x)+.5)/float64(width)-b.x, (float64(y)+.5)/float64(height)-b.y
				near := math.Exp(-(dx*dx + dy*dy) / (b.size * b.size))
				if b.red > 50 && near > .5 {
					near = 1
				}
				c[0], c[1], c[2] = c[0]+near*b.red, c[1]+near*b.green, c[2]+near*b.blue
			}
			of := func(v float64) uint8 { return uint8(min(255, max(0, v))) }
			m.SetNRGBA(x, y, color.NRGBA{of(c[0]), of(c[1]), of(c[2]), 255})
		}
	}
	return m
}

// recoded returns a picture after JPEG.
func recoded(t *testing.T, m image.Image, quality int) image.Image {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	out, err := jpeg.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Copies of a picture are near it, and other pictures are not.
func TestCopiesAreNear(t *testing.T) {
	pdq := func(m image.Image) []byte { code, _ := PDQ(m); return code }
	for _, h := range []struct {
		name      string
		hash      func(image.Image) []byte
		near, far int
	}{{"PDQ", pdq, 31, 70}, {"PHash", PHash, 7, 14}, {"DHash", DHash, 6, 12}} {
		var codes [][]byte
		for seed := range uint64(5) {
			m := scene(seed, 320, 240)
			code := h.hash(m)
			for name, copied := range map[string]image.Image{"half": scene(seed, 160, 120),
				"narrow": scene(seed, 250, 240), "recoded": recoded(t, m, 30)} {
				if d := distance(code, h.hash(copied)); d > h.near {
					t.Errorf("%s: picture %d, %s: %d bits from its original", h.name, seed, name, d)
				}
			}
			for other, c := range codes {
				if d := distance(code, c); d < h.far {
					t.Errorf("%s: pictures %d and %d are %d bits apart", h.name, seed, other, d)
				}
			}
			codes = append(codes, code)
		}
	}
}

// opaque hides the type of a picture, so that it is read by At.
type opaque struct{ image.Image }

// A picture has the same codes whether its type is known or not, wherever its corner is, and none is too odd
// to be hashed.
func FuzzPictures(f *testing.F) {
	f.Add(uint8(0), uint8(9), uint8(7), int8(-3), []byte("some pixels of a picture, \x00\xff\x80"))
	f.Add(uint8(5), uint8(64), uint8(64), int8(1), []byte{1, 2, 3, 250, 5, 0, 7})
	f.Add(uint8(12), uint8(0), uint8(1), int8(0), []byte{})
	f.Fuzz(func(t *testing.T, kind, width, height uint8, corner int8, data []byte) {
		at := int(corner)
		m := picture(kind, image.Rect(at, at, at+int(width), at+int(height)), data)
		code, quality := PDQ(m)
		turns, _ := PDQTurns(m)
		slow, slowQuality := PDQ(opaque{m})
		if !bytes.Equal(code, slow) || quality != slowQuality || !bytes.Equal(code, turns[0]) {
			t.Fatalf("%T: %x, %d; read by At %x, %d; turns %x", m, code, quality, slow, slowQuality, turns[0])
		}
		if quality < 0 || quality > 100 {
			t.Fatal("quality", quality)
		}
		if a, b := PHash(m), PHash(opaque{m}); !bytes.Equal(a, b) {
			t.Fatalf("%T: pHash %x; read by At %x", m, a, b)
		}
		if a, b := DHash(m), DHash(opaque{m}); !bytes.Equal(a, b) {
			t.Fatalf("%T: dHash %x; read by At %x", m, a, b)
		}
		if a, b := Look(m), Look(opaque{m}); !slices.Equal(a, b) {
			t.Fatalf("%T: the look differs when it is read by At", m)
		}
	})
}

// picture returns a picture of one of all types, with pixels from data, which it repeats.
func picture(kind uint8, size image.Rectangle, data []byte) image.Image {
	fill := func(pix []uint8) {
		for i := range pix {
			if len(data) > 0 {
				pix[i] = data[i%len(data)] + uint8(i/len(data))
			}
		}
	}
	switch kind % 13 {
	case 0, 1, 2, 3, 4, 5:
		m := image.NewNYCbCrA(size, image.YCbCrSubsampleRatio(kind%6))
		fill(m.Y)
		fill(m.Cb)
		fill(m.Cr)
		if fill(m.A); kind/13%2 == 0 {
			return m
		}
		return &m.YCbCr
	case 6:
		m := image.NewRGBA(size)
		fill(m.Pix)
		return m
	case 7:
		m := image.NewNRGBA(size)
		fill(m.Pix)
		return m
	case 8:
		m := image.NewGray(size)
		fill(m.Pix)
		return m
	case 9:
		m := image.NewGray16(size)
		fill(m.Pix)
		return m
	case 10:
		m := image.NewPaletted(size, nil)
		for i := range 256 {
			m.Palette = append(m.Palette, color.NRGBA{uint8(i), uint8(3 * i), uint8(7 * i), uint8(i)})
		}
		fill(m.Pix)
		return m
	case 11:
		m := image.NewCMYK(size)
		fill(m.Pix)
		return m
	}
	m := image.NewNRGBA64(size)
	fill(m.Pix)
	return m
}

// A part of a picture has the codes of a picture that is that part.
func TestPartsOfPictures(t *testing.T) {
	m := scene(3, 90, 70)
	part := image.Rect(10, 20, 81, 65)
	moved := image.NewNRGBA(image.Rect(0, 0, 71, 45))
	for y := range 45 {
		for x := range 71 {
			moved.SetNRGBA(x, y, m.NRGBAAt(x+10, y+20))
		}
	}
	a, _ := PDQ(m.SubImage(part))
	b, _ := PDQ(moved)
	if !bytes.Equal(a, b) || !bytes.Equal(PHash(m.SubImage(part)), PHash(moved)) {
		t.Error("the codes of a part are others")
	}
}

// What transparent pixels hide counts as far as the picture still has it.
func TestAlphaIsIgnored(t *testing.T) {
	m := scene(4, 100, 100)
	clear := image.NewNRGBA(m.Rect)
	for i := range m.Pix {
		if clear.Pix[i] = m.Pix[i]; i%4 == 3 {
			clear.Pix[i] = uint8(i / 400)
		}
	}
	a, _ := PDQ(m)
	if b, _ := PDQ(clear); !bytes.Equal(a, b) {
		t.Errorf("%x with alpha, %x without", b, a)
	}
}
