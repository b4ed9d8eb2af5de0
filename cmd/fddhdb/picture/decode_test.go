package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"path/filepath"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// corner returns a picture of 40 x 20 pixels that is red in its upper left quarter, blue in its lower right
// one and grey elsewhere.
func corner() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, 40, 20))
	for y := range 20 {
		for x := range 40 {
			c := color.RGBA{128, 128, 128, 255}
			switch {
			case x < 20 && y < 10:
				c = color.RGBA{255, 0, 0, 255}
			case x >= 20 && y >= 10:
				c = color.RGBA{0, 0, 255, 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

// A picture is shown as the camera was held. Where red and blue are to be seen follows from the figure of the
// eight orientations in the standard of EXIF.
func TestOrientation(t *testing.T) {
	const upperLeft, upperRight, lowerLeft, lowerRight = 0, 1, 2, 3
	var b bytes.Buffer
	clitest.Check(t, jpeg.Encode(&b, corner(), &jpeg.Options{Quality: 95}))
	for orientation, want := range map[int][2]int{1: {upperLeft, lowerRight}, 2: {upperRight, lowerLeft},
		3: {lowerRight, upperLeft}, 4: {lowerLeft, upperRight}, 5: {upperLeft, lowerRight},
		6: {upperRight, lowerLeft}, 7: {lowerRight, upperLeft}, 8: {lowerLeft, upperRight}} {
		path := filepath.Join(t.TempDir(), "a.jpg")
		clitest.WriteFile(t, path, string(clitest.WithExif(b.Bytes(), "", "", orientation, "", "")))
		p, err := Read(path)
		clitest.Check(t, err)
		small, err := p.Thumbnail()
		clitest.Check(t, err)
		decoded, err := jpeg.Decode(bytes.NewReader(small))
		clitest.Check(t, err)
		for name, m := range map[string]image.Image{"upright": p.Upright(), "thumbnail": decoded} {
			width, height := 40, 20
			if orientation > 4 {
				width, height = height, width
			}
			if s := m.Bounds().Size(); s.X != width || s.Y != height {
				t.Errorf("orientation %d, %s: %v", orientation, name, s)
				continue
			}
			for i := range 4 {
				r, _, b, _ := m.At(width/4+i%2*width/2, height/4+i/2*height/2).RGBA()
				if red := r > b+0x8000; red != (i == want[0]) {
					t.Errorf("orientation %d, %s: quarter %d is red: %v", orientation, name, i, red)
				}
				if blue := b > r+0x8000; blue != (i == want[1]) {
					t.Errorf("orientation %d, %s: quarter %d is blue: %v", orientation, name, i, blue)
				}
			}
		}
	}
}

// Maker, model and time of the camera are read. With an offset the time is in UTC.
func TestExif(t *testing.T) {
	var b bytes.Buffer
	clitest.Check(t, jpeg.Encode(&b, corner(), nil))
	clock := time.Date(2024, 5, 17, 18, 30, 1, 0, time.UTC)
	for _, test := range []struct {
		maker, model, at, offset string
		camera                   string
		want                     time.Time
	}{
		{"Nikon", "NIKON D90", "2024:05:17 18:30:01", "", "NIKON D90", clock},
		{"Acme", "Box 2 ", "2024:05:17 18:30:01", "+02:00", "Acme Box 2", clock.Add(-2 * time.Hour)},
		{"", "a\x1b[31mb", "2024:05:17", "", "a[31mb", time.Time{}},
		{"", "", "0000:00:00 00:00:00", "x", "", time.Time{}},
		{"", "", "9999:12:31 23:59:59", "-12:00", "", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
	} {
		path := filepath.Join(t.TempDir(), "a.jpg")
		data := clitest.WithExif(b.Bytes(), test.maker, test.model, 3, test.at, test.offset)
		clitest.WriteFile(t, path, string(data))
		p, err := Read(path)
		clitest.Check(t, err)
		if p.Camera != test.camera || !p.TakenAt.Equal(test.want) || p.Orientation != 3 {
			t.Errorf("%q %v %d, want %q %v", p.Camera, p.TakenAt, p.Orientation, test.camera, test.want)
		}
	}
}

// A thumbnail has at most 256 pixels a side, keeps the shape, and is of no larger size than the picture.
func TestThumbnail(t *testing.T) {
	for _, test := range []struct{ width, height, wantWidth, wantHeight int }{
		{3000, 1500, 256, 128}, {100, 50, 100, 50}, {1, 5000, 1, 256}, {257, 256, 256, 255}} {
		m := image.NewNRGBA(image.Rect(0, 0, test.width, test.height)) // transparent
		small, err := (&Picture{Image: m}).Thumbnail()
		clitest.Check(t, err)
		got, err := jpeg.Decode(bytes.NewReader(small))
		clitest.Check(t, err)
		if s := got.Bounds().Size(); s.X != test.wantWidth || s.Y != test.wantHeight {
			t.Errorf("%d x %d: %v", test.width, test.height, s)
		}
		if r, _, _, _ := got.At(0, 0).RGBA(); r < 0xf000 {
			t.Errorf("%d x %d: what is transparent is not white", test.width, test.height)
		}
	}
}

// Hostile metadata cost themselves and nothing else.
func FuzzExif(f *testing.F) {
	var b bytes.Buffer
	clitest.Check(f, jpeg.Encode(&b, corner(), nil))
	f.Add(clitest.WithExif(b.Bytes(), "Acme", "Box", 6, "2024:05:17 18:30:01", "+02:00"), 0)
	f.Add(b.Bytes(), 0)
	b.Reset()
	clitest.Check(f, png.Encode(&b, corner()))
	f.Add(b.Bytes(), 1)
	f.Add(binary.LittleEndian.AppendUint32([]byte("RIFF"), 30), 2)
	f.Fuzz(func(t *testing.T, data []byte, format int) {
		e := readExif(bytes.NewReader(data), []string{"jpeg", "png", "webp", "gif"}[uint(format)%4])
		if e.Orientation < 0 || e.Orientation > 8 || len(e.Camera) > 2*maxCamera+1 {
			t.Errorf("%+v", e)
		}
	})
}
