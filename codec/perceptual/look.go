package perceptual

import (
	"image"
	"math"
)

// LookDim is the number of dimensions of Look.
const LookDim = 688

// The parts of a vector of Look.
const (
	lookSide  = 64 // the picture is reduced to 64 x 64 pixels
	lookCell  = 8  // a cell of directions has 8 x 8 pixels
	lookCells = lookSide / lookCell
	lookWays  = 9 // directions of edges, of half a turn
	lookGrid  = 4 // colours are averaged over 4 x 4 parts
	lookTones = 4 // levels of each axis of the histogram of colours

	// Shares of edges, of colours by place and of the histogram in a cosine.
	lookEdges, lookPlaces, lookCounts = 0.85, 0.12, 0.03
)

// Look returns a vector of LookDim dimensions that describes the shapes and colours of a picture: directions
// of edges, colours by place, and how often colours occur. Compare two by cosine. Look does not know what a
// picture shows, as a model such as CLIP does. It samples pixels, so a picture of 12 megapixels takes as long
// as a small one. The length of a vector is 1, less if the picture has no edges, and 0 if it has no pixels.
//
// Source of the directions: Dalal and Triggs, "Histograms of Oriented Gradients for Human Detection", CVPR
// 2005, with weights that we chose among photographs of clothes.
func Look(m image.Image) []float32 {
	out := make([]float32, LookDim)
	small := reduced(m)
	if small == nil {
		return out
	}
	edges := out[:lookCells*lookCells*lookWays]
	places := out[len(edges) : len(edges)+3*lookGrid*lookGrid]
	counts := out[len(edges)+len(places):][:lookTones*lookTones*lookTones]
	directions(edges, small)
	const part = lookSide / lookGrid
	for i, c := range small {
		l, a, b := opponent(c)
		at := 3 * (i/lookSide/part*lookGrid + i%lookSide/part)
		places[at] += l
		places[at+1] += 2 * a
		places[at+2] += 2 * b
		tone := func(x float32) int { return min(lookTones-1, int(x*lookTones/256)) }
		counts[(tone(c[0])*lookTones+tone(c[1]))*lookTones+tone(c[2])]++
	}
	for i, n := range counts {
		counts[i] = float32(math.Sqrt(float64(n)))
	}
	weighted(edges, lookEdges)
	weighted(places, lookPlaces)
	weighted(counts, lookCounts)
	return out
}

// reduced returns the mean colours of 64 x 64 parts of a picture, row by row, nil if it has no pixels.
func reduced(m image.Image) [][3]float32 {
	const most = 4 * lookSide // a part is a mean of 16 pixels, if it has as many
	width, height := m.Bounds().Dx(), m.Bounds().Dy()
	if width <= 0 || height <= 0 {
		return nil
	}
	out := make([][3]float32, lookSide*lookSide)
	xs, row, read := sampled(width, most), make([]rgb, most), newRowReader(m)
	for i, y := range sampled(height, most) {
		read(row, y, xs)
		for j, c := range row {
			sum := &out[i*lookSide/most*lookSide+j*lookSide/most]
			sum[0] += float32(c.r) / 16
			sum[1] += float32(c.g) / 16
			sum[2] += float32(c.b) / 16
		}
	}
	return out
}

// opponent returns brightness around 0 and the two differences of colours.
func opponent(c [3]float32) (l, a, b float32) {
	l = .299*c[0] + .587*c[1] + .114*c[2]
	return l - 128, c[0] - c[1], .5*c[0] + .5*c[1] - c[2]
}

// directions adds the edges of a picture to the histograms of its cells. An edge counts in the four cells
// around it and in the two nearest directions. Each cell is then divided by the length of its surroundings.
func directions(out []float32, small [][3]float32) {
	var luma [lookSide * lookSide]float32
	for i, c := range small {
		luma[i] = (.299*c[0] + .587*c[1] + .114*c[2]) / 255
	}
	for y := 1; y < lookSide-1; y++ {
		for x := 1; x < lookSide-1; x++ {
			i := y*lookSide + x
			dx, dy := luma[i+1]-luma[i-1], luma[i+lookSide]-luma[i-lookSide]
			size := float32(math.Hypot(float64(dx), float64(dy)))
			if size == 0 {
				continue
			}
			way := float32(math.Atan2(float64(dy), float64(dx))/math.Pi) * lookWays
			if way < 0 {
				way += lookWays
			}
			first := int(way)
			rest := way - float32(first)
			cy, cx := (float32(y)+.5)/lookCell-.5, (float32(x)+.5)/lookCell-.5
			for j := range 4 {
				ny, nx := int(math.Floor(float64(cy)))+j/2, int(math.Floor(float64(cx)))+j%2
				if ny < 0 || nx < 0 || ny >= lookCells || nx >= lookCells {
					continue
				}
				w := size * (1 - abs32(cy-float32(ny))) * (1 - abs32(cx-float32(nx)))
				at := (ny*lookCells + nx) * lookWays
				out[at+first%lookWays] += w * (1 - rest)
				out[at+(first+1)%lookWays] += w * rest
			}
		}
	}
	var square [lookCells * lookCells]float32
	for i := range square {
		for _, v := range out[i*lookWays : (i+1)*lookWays] {
			square[i] += v * v
		}
	}
	for i := range square {
		around := float32(0)
		for y := max(0, i/lookCells-1); y <= min(lookCells-1, i/lookCells+1); y++ {
			for x := max(0, i%lookCells-1); x <= min(lookCells-1, i%lookCells+1); x++ {
				around += square[y*lookCells+x]
			}
		}
		scale := 1 / float32(math.Sqrt(float64(around)+.5))
		for j := range lookWays {
			v := &out[i*lookWays+j]
			*v = float32(math.Sqrt(float64(*v * scale)))
		}
	}
}

func abs32(x float32) float32 { return float32(math.Abs(float64(x))) }

// weighted gives a part of a vector its share of a cosine. A part of zeros stays zero.
func weighted(x []float32, share float64) {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if sum == 0 {
		return
	}
	scale := math.Sqrt(share / sum)
	for i := range x {
		x[i] = float32(float64(x[i]) * scale)
	}
}
