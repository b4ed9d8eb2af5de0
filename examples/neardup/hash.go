package main

import (
	"image"
	"image/color"
)

const rows, columns = 8, 9

// hash returns the difference hash of a picture. The picture is divided into 9 x 8
// parts; each bit says whether a part is brighter than the part to its right. Of a large
// picture it looks at some pixels of each part.
func hash(m image.Image) []byte {
	const enough = 25 // pixels of a part in each direction
	var light, pixels [rows][columns]int
	b := m.Bounds()
	down, right := max(1, b.Dy()/(rows*enough)), max(1, b.Dx()/(columns*enough))
	for y := b.Min.Y; y < b.Max.Y; y += down {
		for x := b.Min.X; x < b.Max.X; x += right {
			row, column := (y-b.Min.Y)*rows/b.Dy(), (x-b.Min.X)*columns/b.Dx()
			light[row][column] += int(color.GrayModel.Convert(m.At(x, y)).(color.Gray).Y)
			pixels[row][column]++
		}
	}
	code := make([]byte, bits/8)
	for row := range rows {
		for column := range columns - 1 {
			if light[row][column]*pixels[row][column+1] > light[row][column+1]*pixels[row][column] {
				code[row] |= 1 << column
			}
		}
	}
	return code
}
