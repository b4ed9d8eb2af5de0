package perceptual

import (
	"image"
	"image/color"
)

// An rgb is a colour of 8 bits a channel, without alpha.
type rgb struct{ r, g, b uint8 }

// A rowReader stores the colours of a row of a picture into out: those at the columns xs, counted from the
// left edge of the picture. y counts from its top edge.
type rowReader func(out []rgb, y int, xs []int)

// newRowReader returns the reader of a picture. The types that decoders return are read without a call a
// pixel. All other types are read by At, with the same result.
func newRowReader(m image.Image) rowReader {
	left, top := m.Bounds().Min.X, m.Bounds().Min.Y
	switch m := m.(type) {
	case *image.YCbCr:
		return yCbCrRows(m)
	case *image.NYCbCrA:
		return yCbCrRows(&m.YCbCr)
	case *image.NRGBA:
		return func(out []rgb, y int, xs []int) {
			row := m.Pix[y*m.Stride:]
			for i, x := range xs {
				p := row[4*x : 4*x+3 : 4*x+3]
				out[i] = rgb{p[0], p[1], p[2]}
			}
		}
	case *image.RGBA:
		return func(out []rgb, y int, xs []int) {
			row := m.Pix[y*m.Stride:]
			for i, x := range xs {
				p := row[4*x : 4*x+4 : 4*x+4]
				out[i] = divided(p[0], p[1], p[2], p[3])
			}
		}
	case *image.Gray:
		return func(out []rgb, y int, xs []int) {
			row := m.Pix[y*m.Stride:]
			for i, x := range xs {
				out[i] = rgb{row[x], row[x], row[x]}
			}
		}
	case *image.Paletted:
		var colours [256]rgb // a pixel beyond the palette is black
		for i, c := range m.Palette[:min(len(m.Palette), len(colours))] {
			colours[i] = ofColor(c)
		}
		return func(out []rgb, y int, xs []int) {
			row := m.Pix[y*m.Stride:]
			for i, x := range xs {
				out[i] = colours[row[x]]
			}
		}
	}
	return func(out []rgb, y int, xs []int) {
		for i, x := range xs {
			out[i] = ofColor(m.At(left+x, top+y))
		}
	}
}

func yCbCrRows(m *image.YCbCr) rowReader {
	left, top := m.Rect.Min.X, m.Rect.Min.Y
	return func(out []rgb, y int, xs []int) {
		row := m.Y[y*m.YStride:]
		for i, x := range xs {
			c := m.COffset(left+x, top+y)
			out[i].r, out[i].g, out[i].b = color.YCbCrToRGB(row[x], m.Cb[c], m.Cr[c])
		}
	}
}

// ofColor returns a colour without its alpha.
func ofColor(c color.Color) rgb {
	switch c := c.(type) {
	case color.NRGBA: // color.NRGBAModel has no colour for pixels that are fully transparent
		return rgb{c.R, c.G, c.B}
	case color.NYCbCrA:
		r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
		return rgb{r, g, b}
	case color.RGBA:
		return divided(c.R, c.G, c.B, c.A)
	case color.NRGBA64:
		return rgb{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8)}
	}
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	return rgb{n.R, n.G, n.B}
}

// divided divides a colour by the alpha that it was multiplied by.
func divided(r, g, b, a uint8) rgb {
	switch a {
	case 255:
		return rgb{r, g, b}
	case 0:
		return rgb{}
	}
	of := func(v uint8) uint8 { return uint8(min(255, (2*uint32(v)*255+uint32(a))/(2*uint32(a)))) }
	return rgb{of(r), of(g), of(b)}
}

// sampled returns n columns or rows, evenly spaced among so many. All of them if n is as many.
func sampled(of, n int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i * of / n
	}
	return at
}
