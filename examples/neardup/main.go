package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"log"
	"math/rand/v2"
	"os"

	"github.com/fddhdb/fddhdb/db"
)

func main() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fddhdb-neardup-")
	check(err)
	defer os.RemoveAll(dir)
	d, err := db.Open(dir, nil)
	check(err)
	defer d.Close()
	c, err := d.CreateCollection(ctx, "pictures", db.Schema{Bits: 64})
	check(err)
	comes := func(name string, picture image.Image) {
		code := hash(picture)
		near, err := c.SearchRadius(ctx, db.Query{Code: code}, 8)
		check(err)
		defer near.Close()
		for hit, err := range near.Hits(ctx) {
			check(err)
			fmt.Printf("%s looks like %s: distance %d of 64 bits\n", name, hit.Key, hit.Distance)
		}
		_, err = c.Put(ctx, &db.Item{Key: name, Code: code})
		check(err)
	}
	for i := range 300 {
		name, picture := fmt.Sprint("picture ", i), paint(uint64(i))
		comes(name, picture)
		switch i {
		case 60:
			comes(name+" cropped", picture.SubImage(picture.Rect.Inset(3)))
		case 120:
			comes(name+" darker", change(picture, func(x, y int) int { return int(picture.GrayAt(x, y).Y) * 2 / 3 }))
		case 180:
			comes(name+" smaller", change(image.NewGray(image.Rect(0, 0, 60, 45)), func(x, y int) int { return int(picture.GrayAt(2*x, 2*y).Y) }))
		case 240:
			var file bytes.Buffer
			check(jpeg.Encode(&file, picture, &jpeg.Options{Quality: 10}))
			saved, err := jpeg.Decode(&file)
			check(err)
			comes(name+" saved badly", saved)
		}
	}
}

// hash returns the difference hash of a picture. The picture is divided into 9 x 8
// parts; each bit says whether a part is brighter than the part to its right.
func hash(m image.Image) []byte {
	var light, pixels [8][9]int
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			row, column := (y-b.Min.Y)*8/b.Dy(), (x-b.Min.X)*9/b.Dx()
			light[row][column] += int(color.GrayModel.Convert(m.At(x, y)).(color.Gray).Y)
			pixels[row][column]++
		}
	}
	code := make([]byte, 8)
	for row := range 8 {
		for column := range 8 {
			if light[row][column]*pixels[row][column+1] > light[row][column+1]*pixels[row][column] {
				code[row] |= 1 << column
			}
		}
	}
	return code
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

// change returns a picture of the size of m, with other light.
func change(m *image.Gray, light func(x, y int) int) *image.Gray {
	out := image.NewGray(m.Rect)
	for y := range m.Rect.Dy() {
		for x := range m.Rect.Dx() {
			out.SetGray(x, y, color.Gray{Y: uint8(light(x, y))})
		}
	}
	return out
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
