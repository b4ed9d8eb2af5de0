package sheet

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // image.Decode reads it
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
)

// Decoding takes up to about 16 bytes a pixel, for one picture at a time: it may be hostile.
const maxPixels = 25_000_000

// Pictures are shown in a square, with half as many pixels again for screens with small ones.
const (
	shownSize = 160
	keptSize  = 240
)

// isPicture reports whether data begins as a picture.
func isPicture(data []byte) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif"}, http.DetectContentType(data))
}

// A thumbnail is a picture that is shrunk and encoded again, so that what else a file holds is dropped.
type thumbnail struct {
	kind          string
	data          []byte
	width, height int    // shown
	turn          string // so that it is upright
}

func newThumbnail(data []byte) (*thumbnail, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPixels/config.Height {
		return nil, fmt.Errorf("%d x %d pixels, more than %d million", config.Width, config.Height,
			maxPixels/1_000_000)
	}
	img, _, err := image.Decode(bytes.NewReader(data)) // the first of several
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	small, opaque := shrunk(img)
	t := &thumbnail{turn: turn(data)}
	t.width, t.height = fit(small.Bounds().Size(), shownSize)
	var b bytes.Buffer
	if t.kind = "image/png"; opaque && small.Bounds().Dx()*small.Bounds().Dy() > 128*128 {
		t.kind = "image/jpeg"
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: 85})
	} else {
		err = png.Encode(&b, small)
	}
	t.data = b.Bytes()
	return t, err
}

// fit returns a size that fits a square; a small one is not enlarged.
func fit(size image.Point, box int) (width, height int) {
	most := max(size.X, size.Y, box)
	return max(1, size.X*box/most), max(1, size.Y*box/most)
}

// shrunk returns an image of keptSize or less, each pixel the mean of nine of its place, and whether all are
// opaque.
func shrunk(img image.Image) (_ *image.NRGBA, opaque bool) {
	b := img.Bounds()
	width, height := fit(b.Size(), keptSize)
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	opaque = true
	for y := range height {
		for x := range width {
			var sum [4]uint32
			for i := range 9 {
				r, g, bl, a := img.At(b.Min.X+(6*x+2*(i%3)+1)*b.Dx()/(6*width),
					b.Min.Y+(6*y+2*(i/3)+1)*b.Dy()/(6*height)).RGBA()
				sum[0], sum[1], sum[2], sum[3] = sum[0]+r, sum[1]+g, sum[2]+bl, sum[3]+a
			}
			opaque = opaque && sum[3] == 9*0xffff
			out.Set(x, y, color.RGBA64{uint16(sum[0] / 9), uint16(sum[1] / 9), uint16(sum[2] / 9),
				uint16(sum[3] / 9)})
		}
	}
	return out, opaque
}

// turn returns how far a JPEG must be turned to be upright, by the orientation that the camera wrote: the
// entry 0x112 of its Exif directory (CIPA DC-008), a short number in either order of bytes.
func turn(jpg []byte) string {
	_, exif, _ := bytes.Cut(jpg[:min(len(jpg), 1<<16)], []byte("Exif\x00\x00"))
	for way, turn := range map[string]string{"\x03": "180deg", "\x06": "90deg", "\x08": "270deg"} {
		little, big := "\x12\x01\x03\x00\x01\x00\x00\x00"+way+"\x00",
			"\x01\x12\x00\x03\x00\x00\x00\x01\x00"+way
		if bytes.Contains(exif, []byte(little)) || bytes.Contains(exif, []byte(big)) {
			return turn
		}
	}
	return "none"
}
