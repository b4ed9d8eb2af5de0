package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"iter"
	"math/rand/v2"
)

// paintings yields 300 pictures and copies of some, by name.
func paintings() iter.Seq2[string, image.Image] {
	copies := map[int]struct {
		name string
		of   func(m *image.Gray) image.Image
	}{60: {"cropped", crop}, 120: {"darker", darken}, 180: {"smaller", shrink},
		240: {"saved badly", saveBadly}}
	return func(yield func(string, image.Image) bool) {
		for i := range 300 {
			name, picture := fmt.Sprint("picture ", i), paint(uint64(i))
			if !yield(name, picture) {
				return
			}
			if c, is := copies[i]; is && !yield(name+" "+c.name, c.of(picture)) {
				return
			}
		}
	}
}

// paint returns a picture of rectangles. It depends on the seed alone.
func paint(seed uint64) *image.Gray {
	random := rand.New(rand.NewPCG(seed, 0))
	m := image.NewGray(image.Rect(0, 0, 240, 180))
	for range 40 {
		x, y := random.IntN(240), random.IntN(180)
		shape := image.Rect(x-20-random.IntN(60), y-20-random.IntN(40), x+20, y+20)
		draw.Draw(m, shape, image.NewUniform(color.Gray{Y: uint8(random.Uint32())}), image.Point{}, draw.Src)
	}
	return m
}

func crop(m *image.Gray) image.Image { return m.SubImage(m.Rect.Inset(2)) }

func darken(m *image.Gray) image.Image {
	return change(m.Rect, func(x, y int) int { return int(m.GrayAt(x, y).Y) * 2 / 3 })
}

func shrink(m *image.Gray) image.Image {
	at := func(x, y int) int { return int(m.GrayAt(x, y).Y) }
	return change(image.Rect(0, 0, m.Rect.Dx()/2, m.Rect.Dy()/2), func(x, y int) int {
		return (at(2*x, 2*y) + at(2*x+1, 2*y) + at(2*x, 2*y+1) + at(2*x+1, 2*y+1)) / 4
	})
}

func saveBadly(m *image.Gray) image.Image {
	var file bytes.Buffer
	err := jpeg.Encode(&file, m, &jpeg.Options{Quality: 10})
	saved, err2 := jpeg.Decode(&file)
	if err := errors.Join(err, err2); err != nil {
		panic(err) // a picture of this size can be saved
	}
	return saved
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
