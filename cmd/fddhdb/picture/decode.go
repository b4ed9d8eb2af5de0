package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	"image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"
)

// Limits of pictures that are decoded. A decoder takes up to 8 bytes a pixel.
const (
	maxPixels  = 100_000_000
	manyPixels = 25_000_000 // pictures with more are decoded one at a time
	maxFile    = 1 << 30
)

// big is held while a picture with many pixels is decoded.
var big sync.Mutex

// Decode decodes a JPEG, PNG, GIF or WebP; of an animated GIF the first picture. It refuses pictures with
// more than 100 million pixels before it takes memory for them.
func Decode(from io.ReadSeeker) (image.Image, error) {
	m, _, err := decode(from)
	return m, err
}

func decode(from io.ReadSeeker) (m image.Image, format string, _ error) {
	config, format, err := image.DecodeConfig(from)
	if errors.Is(err, image.ErrFormat) {
		return nil, "", errors.New("it is no JPEG, PNG, GIF or WebP")
	}
	if err != nil {
		return nil, "", undecodable(err)
	}
	pixels := int64(config.Width) * int64(config.Height)
	if pixels > maxPixels {
		return nil, "", fmt.Errorf("the picture has %d x %d pixels, and at most %d are read", config.Width,
			config.Height, maxPixels)
	}
	if pixels > manyPixels {
		big.Lock()
		defer big.Unlock()
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, "", err
	}
	if m, _, err = image.Decode(from); err != nil {
		return nil, "", undecodable(err)
	}
	return m, format, nil
}

func undecodable(err error) error { return fmt.Errorf("it is damaged or cut short: %w", err) }

// A Picture is a file that has been decoded.
type Picture struct {
	image.Image // as the file stores it
	Bytes       int64
	Modified    time.Time
	Exif
}

// Read decodes the picture in a file, which has to be a regular one, and reads its metadata. Errors lack the
// path.
func Read(path string) (*Picture, error) {
	info, err := os.Stat(path) // to open a pipe could block for ever
	switch {
	case err != nil:
		return nil, Reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() == 0:
		return nil, errors.New("the file is empty")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("the file has %d bytes, and at most %d are read", info.Size(), maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Reason(err)
	}
	defer f.Close()
	m, format, err := decode(f)
	if err != nil {
		return nil, err
	}
	return &Picture{m, info.Size(), info.ModTime(), readExif(f, format)}, nil
}

// Reason returns the error of a file without its path.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// thumbnailSide is the longer side of a thumbnail, in pixels.
const thumbnailSide = 256

// turnedSide is the longer side of a picture that is turned, in pixels, so that a large one takes no memory
// for copies.
const turnedSide = 1024

// Upright returns the picture as a person sees it: a camera that was held sideways says so in the metadata.
// One that has to be turned is sampled to at most 1,024 pixels a side first.
func (p *Picture) Upright() image.Image {
	if p.Orientation <= 1 {
		return p.Image
	}
	from := p.scaled(min(1, turnedSide/float64(max(p.Bounds().Dx(), p.Bounds().Dy()))))
	draw.ApproxBiLinear.Scale(from, from.Rect, p.Image, p.Bounds(), draw.Src, nil)
	return turned(from, p.Orientation)
}

// scaled returns an empty picture of the scaled size.
func (p *Picture) scaled(scale float64) *image.RGBA {
	return image.NewRGBA(image.Rect(0, 0, max(1, int(scale*float64(p.Bounds().Dx())+.5)),
		max(1, int(scale*float64(p.Bounds().Dy())+.5))))
}

// turned returns a picture in the orientation of EXIF, from 2 to 8.
func turned(from *image.RGBA, orientation int) *image.RGBA {
	width, height := from.Rect.Dx(), from.Rect.Dy()
	if orientation > 4 {
		width, height = height, width
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			fromX, fromY := x, y
			if orientation > 4 {
				fromX, fromY = y, x
			}
			switch orientation {
			case 2, 3, 7, 8:
				fromX = from.Rect.Dx() - 1 - fromX
			}
			switch orientation {
			case 3, 4, 6, 7:
				fromY = from.Rect.Dy() - 1 - fromY
			}
			copy(out.Pix[out.PixOffset(x, y):][:4], from.Pix[from.PixOffset(fromX, fromY):][:4])
		}
	}
	return out
}

// Thumbnail returns the picture as a person sees it, as a JPEG whose longer side has 256 pixels, or fewer if
// the picture has fewer. Transparent parts are white.
func (p *Picture) Thumbnail() ([]byte, error) {
	m, b := p.Image, p.Bounds()
	scale := min(1, thumbnailSide/float64(max(b.Dx(), b.Dy())))
	small := p.scaled(scale)
	if 4*scale < 1 { // a large picture is sampled first: means of all its pixels take long
		sampled := p.scaled(4 * scale)
		draw.ApproxBiLinear.Scale(sampled, sampled.Rect, m, b, draw.Src, nil)
		m = sampled
	}
	draw.Draw(small, small.Rect, image.White, image.Point{}, draw.Src)
	draw.BiLinear.Scale(small, small.Rect, m, m.Bounds(), draw.Over, nil)
	if p.Orientation > 1 {
		small = turned(small, p.Orientation)
	}
	var out bytes.Buffer
	err := jpeg.Encode(&out, small, &jpeg.Options{Quality: 80})
	return out.Bytes(), err
}
