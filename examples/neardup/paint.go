package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math/rand/v2"
)

// lookAtPaintings looks at 300 pictures that the program paints, and at copies of some.
func (f *finder) lookAtPaintings(ctx context.Context) error {
	for i := range 300 {
		name, picture := fmt.Sprint("picture ", i), paint(uint64(i))
		if err := f.look(ctx, name, picture); err != nil {
			return err
		}
		var copied image.Image
		switch i {
		case 60:
			name, copied = name+" cropped", crop(picture)
		case 120:
			name, copied = name+" darker", darken(picture)
		case 180:
			name, copied = name+" smaller", shrink(picture)
		case 240:
			var err error
			if copied, err = saveBadly(picture); err != nil {
				return err
			}
			name += " saved badly"
		default:
			continue
		}
		if err := f.look(ctx, name, copied); err != nil {
			return err
		}
	}
	return nil
}

// paint returns a picture of rectangles. It depends on the seed alone.
func paint(seed uint64) *image.Gray {
	random := rand.New(rand.NewPCG(seed, 0))
	m := image.NewGray(image.Rect(0, 0, 120, 90))
	for range 40 {
		x, y := random.IntN(120), random.IntN(90)
		shape := image.Rect(x-10-random.IntN(30), y-10-random.IntN(20), x+10, y+10)
		draw.Draw(m, shape, image.NewUniform(color.Gray{Y: uint8(random.Uint32())}), image.Point{}, draw.Src)
	}
	return m
}

func crop(m *image.Gray) image.Image { return m.SubImage(m.Rect.Inset(3)) }

func darken(m *image.Gray) image.Image {
	return change(m.Rect, func(x, y int) int { return int(m.GrayAt(x, y).Y) * 2 / 3 })
}

func shrink(m *image.Gray) image.Image {
	return change(image.Rect(0, 0, m.Rect.Dx()/2, m.Rect.Dy()/2),
		func(x, y int) int { return int(m.GrayAt(2*x, 2*y).Y) })
}

func saveBadly(m *image.Gray) (image.Image, error) {
	var file bytes.Buffer
	if err := jpeg.Encode(&file, m, &jpeg.Options{Quality: 10}); err != nil {
		return nil, err
	}
	return jpeg.Decode(&file)
}

// change returns a picture with this light.
func change(size image.Rectangle, light func(x, y int) int) *image.Gray {
	m := image.NewGray(size)
	for y := range size.Dy() {
		for x := range size.Dx() {
			m.SetGray(x, y, color.Gray{Y: uint8(light(x, y))})
		}
	}
	return m
}
