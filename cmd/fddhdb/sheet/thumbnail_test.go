package sheet

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// hugePNG returns a PNG that claims a size without having the pixels.
func hugePNG(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	b = append(b, 8, 6, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
	return append(b, "\x00\x00\x00\x00IDAT"...)
}

func TestThumbnailLimits(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{hugePNG(50_000, 50_000), "50000 x 50000 pixels, more than 25 million"},
		{hugePNG(25_000_001, 1), "25000001 x 1 pixels"},
		{hugePNG(1<<31-1, 1<<31-1), ""},
		{hugePNG(10, 10), "it is damaged: "},
		{[]byte("GIF89a"), "it is damaged: "},
		{[]byte("\xff\xd8\xff"), "it is damaged: "},
		{clitest.Picture(t, "a.jpg", 90, 80, color.Black)[:300], "it is damaged: "},
	} {
		shown, err := newThumbnail(c.data)
		if err == nil || shown != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.30q: %v", c.data, err)
		}
	}
	// The largest side fits, the other keeps its share and is at least a pixel.
	for _, c := range [][4]int{{480, 240, 240, 120}, {3, 2, 3, 2}, {2400, 1, 240, 1}, {240, 240, 240, 240},
		{24, 2400, 2, 240}} {
		shown, err := newThumbnail(clitest.Picture(t, "a.png", c[0], c[1], color.Black))
		if err != nil {
			t.Fatal(err)
		}
		if img, _, err := image.Decode(bytes.NewReader(shown.data)); err != nil ||
			img.Bounds().Size() != image.Pt(c[2], c[3]) || max(shown.width, shown.height) > shownSize {
			t.Errorf("%v: %+v, %v", c, shown, err)
		}
	}
}

// What a picture shows stays where it is, in its colours, also where it is shrunk.
func TestShrunk(t *testing.T) {
	img := image.NewNRGBA(image.Rect(7, 9, 7+1000, 9+500)) // at a place of its own
	corners := [2][2]color.NRGBA{{{255, 0, 0, 255}, {0, 255, 0, 255}}, {{0, 0, 255, 255}, {90, 80, 70, 0}}}
	for y := range 500 {
		for x := range 1000 {
			img.SetNRGBA(7+x, 9+y, corners[y/250][x/500])
		}
	}
	got, opaque := shrunk(img)
	if opaque || got.Bounds().Size() != image.Pt(240, 120) {
		t.Errorf("%v, opaque %v", got.Bounds(), opaque)
	}
	for y := range 2 {
		for x := range 2 {
			want := corners[y][x]
			if want.A == 0 {
				want = color.NRGBA{}
			}
			if c := got.NRGBAAt(60+120*x, 30+60*y); c != want {
				t.Errorf("%d, %d: %v, want %v", x, y, c, want)
			}
		}
	}
}

// withOrientation adds a camera's orientation to a JPEG.
func withOrientation(jpg []byte, order binary.AppendByteOrder, way uint16) []byte {
	tiff := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		tiff = []byte("MM\x00*")
	}
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 2)
	for _, tag := range []uint16{0x10f, 0x112} {
		tiff = order.AppendUint16(tiff, tag)
		tiff = order.AppendUint16(tiff, 3)
		tiff = order.AppendUint32(tiff, 1)
		tiff = order.AppendUint16(tiff, way)
		tiff = append(tiff, 0, 0)
	}
	segment := append([]byte("Exif\x00\x00"), tiff...)
	out := append(bytes.Clone(jpg[:2]), 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(segment)+2))
	return append(append(out, segment...), jpg[2:]...)
}

// Photographs are upright.
func TestTurn(t *testing.T) {
	jpg := clitest.Picture(t, "a.jpg", 12, 9, color.Black)
	want := map[uint16]string{3: "180deg", 6: "90deg", 8: "270deg"}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for way := range uint16(300) {
			if got := turn(withOrientation(jpg, order, way)); got != cmp.Or(want[way], "none") {
				t.Errorf("%v, way %d: %s", order, way, got)
			}
		}
	}
	if got := turn(jpg); got != "none" {
		t.Error(got)
	}
}

func FuzzThumbnail(f *testing.F) {
	for _, name := range []string{"a.png", "a.jpg", "a.gif"} {
		f.Add(clitest.Picture(f, name, 12, 9, color.Gray{77}))
	}
	f.Add(withOrientation(clitest.Picture(f, "a.jpg", 12, 9, color.Gray{77}), binary.BigEndian, 6))
	f.Add(hugePNG(100, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isPicture(data) {
			return
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<20 {
			return // the limits have a test of their own
		}
		shown, err := newThumbnail(data)
		if err != nil {
			return
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(shown.data)); err != nil || c.Width < 1 ||
			c.Height < 1 || max(c.Width, c.Height) > keptSize {
			t.Errorf("%d x %d, %v", c.Width, c.Height, err)
		}
	})
}
