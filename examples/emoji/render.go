package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"

	"eliasnaur.com/font/noto/emoji/color"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/harfbuzz"
	"golang.org/x/image/draw"
)

// pictureSide is the width and height of a drawn emoji in pixels. The font's own
// bitmaps have 136 x 128.
const pictureSide = 64

// A renderer draws emoji with the Noto Color Emoji font. It keeps the state of shaping,
// so every goroutine needs its own. The parsed font is read-only and may be shared.
type renderer struct {
	face   *font.Face
	shaper *harfbuzz.Font
	buffer *harfbuzz.Buffer
}

// parseFont reads the embedded font once. After that, newRenderer costs little.
func parseFont() (*font.Font, error) {
	face, err := font.ParseTTF(bytes.NewReader(color.TTF))
	if err != nil {
		return nil, fmt.Errorf("reading the emoji font: %w", err)
	}
	return face.Font, nil
}

func newRenderer(f *font.Font) *renderer {
	face := font.NewFace(f)
	return &renderer{face: face, shaper: harfbuzz.NewFont(face), buffer: harfbuzz.NewBuffer()}
}

// render draws char on a transparent square with sides of pictureSide pixels. It
// returns nil without an error if the font has no single picture for char. Shaping must
// join the whole sequence into one glyph: a family drawn as three separate people, or a
// flag drawn as two letters, is another picture.
//
// The result is alpha-premultiplied, as scaling and drawing over a background require.
func (r *renderer) render(char string) (*image.RGBA, error) {
	bitmap, ok := r.glyph(char)
	if !ok {
		return nil, nil
	}
	if bitmap.Format != font.PNG {
		return nil, fmt.Errorf("picture of %s (%+q): the font stores format %d, not PNG", char, char, bitmap.Format)
	}
	src, err := png.Decode(bytes.NewReader(bitmap.Data))
	if err != nil {
		return nil, fmt.Errorf("picture of %s (%+q): %w", char, char, err)
	}
	dst := image.NewRGBA(image.Rect(0, 0, pictureSide, pictureSide))
	draw.CatmullRom.Scale(dst, fitSquare(src.Bounds().Size(), pictureSide), src, src.Bounds(), draw.Src, nil)
	return dst, nil
}

// glyph returns the bitmap if shaping makes exactly one of char.
func (r *renderer) glyph(char string) (bitmap font.GlyphBitmap, ok bool) {
	runes := []rune(char)
	r.buffer.Clear()
	r.buffer.AddRunes(runes, 0, len(runes))
	r.buffer.GuessSegmentProperties()
	r.buffer.Shape(r.shaper, nil)
	for i, g := range r.buffer.Info {
		if r.buffer.Pos[i].XAdvance == 0 {
			continue // shaping has used up a variation selector or joiner
		}
		b, isBitmap := r.face.GlyphData(g.Glyph).(font.GlyphBitmap)
		if g.Glyph == 0 || !isBitmap || ok {
			return font.GlyphBitmap{}, false
		}
		bitmap, ok = b, true
	}
	return bitmap, ok
}

// fitSquare returns the largest centred rectangle with the proportions of size in a
// square with the given side.
func fitSquare(size image.Point, side int) image.Rectangle {
	longer := max(size.X, size.Y)
	w, h := size.X*side/longer, size.Y*side/longer
	at := image.Pt((side-w)/2, (side-h)/2)
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(w, h))}
}

// renderAll draws all items, on all cores. pictures[i] is nil if the font cannot draw
// items[i].
func renderAll(ctx context.Context, items []emoji) (pictures []*image.RGBA, err error) {
	parsed, err := parseFont()
	if err != nil {
		return nil, err
	}
	pictures = make([]*image.RGBA, len(items))
	err = inParallel(ctx, len(items), func() func(int) error {
		r := newRenderer(parsed)
		return func(i int) (err error) {
			pictures[i], err = r.render(items[i].char)
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	return pictures, nil
}
