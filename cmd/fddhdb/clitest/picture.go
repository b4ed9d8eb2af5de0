package clitest

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// Picture returns a picture of one colour, in the format of the extension of name.
func Picture(t testing.TB, name string, w, h int, c color.Color) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{c, color.White})
	var b bytes.Buffer
	var err error
	switch {
	case strings.HasSuffix(name, ".jpg"):
		err = jpeg.Encode(&b, img, nil)
	case strings.HasSuffix(name, ".gif"):
		err = gif.Encode(&b, img, nil)
	default:
		err = png.Encode(&b, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
