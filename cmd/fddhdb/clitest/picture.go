package clitest

import (
	"bytes"
	"encoding/binary"
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

// WithExif returns a JPEG with metadata as a camera writes them. "" and 0 stand for a tag that is missing.
func WithExif(data []byte, maker, model string, orientation int, taken, offset string) []byte {
	type tag struct {
		id   uint16
		text string
	}
	le := binary.LittleEndian
	// Directory writes a directory that begins at an offset of the TIFF, with its values behind it.
	directory := func(at int, shorts map[uint16]uint16, longs map[uint16]uint32, texts []tag) []byte {
		n := len(shorts) + len(longs) + len(texts)
		out, values := le.AppendUint16(nil, uint16(n)), []byte{}
		after := at + 2 + 12*n + 4
		for id, v := range shorts {
			out = le.AppendUint32(le.AppendUint16(le.AppendUint16(out, id), 3), 1)
			out = le.AppendUint32(out, uint32(v))
		}
		for _, x := range texts {
			text := x.text + "\x00\x00\x00\x00" // longer than 4 bytes, so that it stands behind
			out = le.AppendUint32(le.AppendUint16(le.AppendUint16(out, x.id), 2), uint32(len(text)))
			out = le.AppendUint32(out, uint32(after+len(values)))
			values = append(values, text...)
		}
		for id, v := range longs {
			out = le.AppendUint32(le.AppendUint16(le.AppendUint16(out, id), 4), 1)
			out = le.AppendUint32(out, v)
		}
		return append(le.AppendUint32(out, 0), values...)
	}
	named := []tag{}
	for _, x := range []tag{{0x10f, maker}, {0x110, model}} {
		if x.text != "" {
			named = append(named, x)
		}
	}
	shorts := map[uint16]uint16{}
	if orientation != 0 {
		shorts[0x112] = uint16(orientation)
	}
	const first = 8
	camera := first + len(directory(first, shorts, map[uint16]uint32{0x8769: 0}, named))
	tiff := append([]byte("II*\x00\x08\x00\x00\x00"),
		directory(first, shorts, map[uint16]uint32{0x8769: uint32(camera)}, named)...)
	tiff = append(tiff, directory(camera, nil, nil, []tag{{0x9003, taken}, {0x9011, offset}})...)
	segment := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{}, data[:2]...)
	out = binary.BigEndian.AppendUint16(append(out, 0xff, 0xe1), uint16(len(segment)+2))
	return append(append(out, segment...), data[2:]...)
}
