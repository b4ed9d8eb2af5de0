package sheet

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
)

// maxPicturePixels is a limit of a picture, which may be hostile. Decoding takes up to about 16 bytes
// a pixel, for one picture at a time.
const maxPicturePixels = 25_000_000

// A pictureDecoder decodes one format. image.Decode would accept every format that some
// package has registered.
type pictureDecoder struct {
	magic  string
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // the first picture of several
}

var pictureDecoders = []pictureDecoder{
	{"\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode},
	{"\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode},
	{"GIF87a", gif.DecodeConfig, gif.Decode},
	{"GIF89a", gif.DecodeConfig, gif.Decode},
}

// isPicture reports whether data begins as a picture.
func isPicture(data []byte) bool { return decoderOf(data) != nil }

// decoderOf returns the decoder for data, or nil if it is no picture.
func decoderOf(data []byte) *pictureDecoder {
	for i, d := range pictureDecoders {
		if bytes.HasPrefix(data, []byte(d.magic)) {
			return &pictureDecoders[i]
		}
	}
	return nil
}

// thumbnail returns a picture, which is one of the pictureDecoders', shrunk to fit a square of box
// pixels.
func thumbnail(ctx context.Context, data []byte, box int) (image.Image, error) {
	d := decoderOf(data)
	config, err := d.config(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	if config.Width < 1 || config.Height < 1 || config.Width > maxPicturePixels/config.Height {
		return nil, fmt.Errorf("%d x %d pixels, more than %d million", config.Width, config.Height, maxPicturePixels/1_000_000)
	}
	img, err := d.decode(interruptible{ctx, bytes.NewReader(data)})
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %w", err)
	}
	return upright(shrunk(img, box), orientation(data)), nil
}

// interruptible reads until the context ends: some pictures take long to decode.
type interruptible struct {
	ctx context.Context
	r   *bytes.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p[:min(len(p), 4096)])
}

// shrunk returns an image that fits a square; a small image is not enlarged.
func shrunk(img image.Image, box int) *image.NRGBA {
	b := img.Bounds()
	width, height := b.Dx(), b.Dy()
	if most := max(width, height); most > box {
		width, height = max(1, width*box/most), max(1, height*box/most)
	}
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	scaler := draw.Scaler(draw.BiLinear)
	if width == b.Dx() && height == b.Dy() {
		scaler = draw.NearestNeighbor
	}
	scaler.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}
