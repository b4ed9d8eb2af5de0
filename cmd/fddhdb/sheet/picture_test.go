package sheet

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
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
		img, err := thumbnail(t.Context(), c.data, 10)
		if err == nil || img != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.30q: %v", c.data, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := thumbnail(ctx, clitest.Picture(t, "a.png", 20, 20, color.Black), 10); err == nil {
		t.Error("an interrupt is not noticed")
	}
	// The largest side fits, the other keeps its share and is at least a pixel.
	for _, c := range [][4]int{{200, 100, 10, 5}, {3, 2, 3, 2}, {1000, 1, 10, 1}, {10, 10, 10, 10}, {7, 70, 1, 10}} {
		img, err := thumbnail(t.Context(), clitest.Picture(t, "a.png", c[0], c[1], color.Black), 10)
		if err != nil || img.Bounds().Size() != image.Pt(c[2], c[3]) {
			t.Errorf("%v: %v, %v", c, img.Bounds(), err)
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

// Photographs are upright. Corners are numbered as they are stored: 0 and 1 above, 2
// and 3 below. The table is that of the standard: the places of the first row and
// column.
func TestOrientation(t *testing.T) {
	shades := []uint8{10, 90, 170, 250}
	img := image.NewGray(image.Rect(0, 0, 64, 32))
	for i := range img.Pix {
		img.Pix[i] = shades[i%64/32+i/64/16*2]
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	for way, corners := range map[uint16][4]int{
		0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}, 2: {1, 0, 3, 2}, 3: {3, 2, 1, 0}, 4: {2, 3, 0, 1},
		5: {0, 2, 1, 3}, 6: {2, 0, 3, 1}, 7: {3, 1, 2, 0}, 8: {1, 3, 0, 2}, 9: {0, 1, 2, 3},
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			got, err := thumbnail(t.Context(), withOrientation(b.Bytes(), order, way), 64)
			if err != nil {
				t.Fatal(err)
			}
			size := got.Bounds().Size()
			if tall := way >= 5 && way <= 8; tall != (size == image.Pt(32, 64)) {
				t.Fatalf("way %d: %v", way, size)
			}
			for i, want := range corners {
				x, y := size.X/4+i%2*size.X/2, size.Y/4+i/2*size.Y/2
				r, _, _, _ := got.At(x, y).RGBA()
				if off := int(r>>8) - int(shades[want]); off < -6 || off > 6 {
					t.Errorf("way %d, corner %d: %d, want %d", way, i, r>>8, shades[want])
				}
			}
		}
	}
}

func FuzzThumbnail(f *testing.F) {
	for _, name := range []string{"a.png", "a.jpg", "a.gif"} {
		f.Add(clitest.Picture(f, name, 12, 9, color.Gray{77}))
	}
	f.Add(withOrientation(clitest.Picture(f, "a.jpg", 12, 9, color.Gray{77}), binary.BigEndian, 6))
	f.Add(hugePNG(100, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		if way := orientation(data); way < 1 || way > 8 {
			t.Errorf("orientation %d", way)
		}
		d := decoderOf(data)
		if d == nil {
			return
		}
		if c, err := d.config(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<20 {
			return // the limits have a test of their own
		}
		img, err := thumbnail(t.Context(), data, 8)
		if err == nil && (img.Bounds().Empty() || img.Bounds().Dx() > 8 || img.Bounds().Dy() > 8) {
			t.Errorf("%v", img.Bounds())
		}
	})
}
