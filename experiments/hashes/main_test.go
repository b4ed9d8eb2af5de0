package hashes

import (
	"bytes"
	"image"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The largest radius with a precision is found, also behind radii that have less.
func TestCounts(t *testing.T) {
	c := newCounts(8)
	codes := [][]byte{{0b0}, {0b1}, {0b1111}}
	c.add([]byte{0b1}, codes, 0)    // 1 from its original, 0 from another one
	c.add([]byte{0b1}, codes, 1)    // the same as its original
	c.add([]byte{0b1111}, codes, 2) // likewise
	for radius, want := range map[int][2]float64{0: {2. / 3, 2. / 3}, 1: {3. / 5, 1}, 2: {3. / 5, 1},
		4: {3. / 9, 1}} {
		if p, r := c.within(radius); math.Abs(p-want[0])+math.Abs(r-want[1]) > 1e-12 {
			t.Errorf("radius %d: %v, %v, want %v", radius, p, r, want)
		}
	}
	if r := c.radius(.6); r != 2 {
		t.Error("radius", r)
	}
	if r := c.radius(1); r != 0 {
		t.Error("radius", r)
	}
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"a.jpg", "b.JPG"} {
		m := image.NewGray(image.Rect(0, 0, 200, 160))
		for j := range m.Pix {
			x, y := float64(j%200)/20, float64(j/200)/20
			m.Pix[j] = uint8(128 + 60*math.Sin(x*float64(1+i)+y*y) + 60*math.Cos(y*float64(2-i)+x))
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := measure(dir, .99, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 2+3*len(changes) {
		t.Errorf("%d lines: %s", n, out.String())
	}
	if !strings.Contains(out.String(), "| 31 | 1.0000 | 1.0000 |") {
		t.Error(out.String())
	}
	if err := measure(t.TempDir(), .99, &out); err == nil {
		t.Error("a folder without photographs is measured")
	}
}
