package perceptual

import (
	"image"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// scaled returns the brightness of a picture that is scaled to width x height, row by row, or zeros if it has
// no pixels. It rounds as Pillow does, the library behind imagehash: brightness to 8 bits, then the columns
// by Lanczos with three lobes, to 8 bits again, then the rows.
func scaled(m image.Image, width, height int) []uint8 {
	out := make([]uint8, width*height)
	fromWidth, fromHeight := m.Bounds().Dx(), m.Bounds().Dy()
	if fromWidth <= 0 || fromHeight <= 0 {
		return out
	}
	across, down := lanczos(fromWidth, width), lanczos(fromHeight, height)
	narrow := make([]uint8, width*fromHeight) // column by column
	xs, read := sampled(fromWidth, fromWidth), newRowReader(m)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), fromHeight) {
		workers.Go(func() {
			row, grey := make([]rgb, fromWidth), make([]uint8, fromWidth)
			for y := int(next.Add(1) - 1); y < fromHeight; y = int(next.Add(1) - 1) {
				read(row, y, xs)
				for x, c := range row {
					grey[x] = uint8((19595*uint32(c.r) + 38470*uint32(c.g) + 7471*uint32(c.b) + 1<<15) >> 16)
				}
				for x, w := range across {
					narrow[x*fromHeight+y] = w.of(grey)
				}
			}
		})
	}
	workers.Wait()
	for y, w := range down {
		for x := range width {
			out[y*width+x] = w.of(narrow[x*fromHeight : (x+1)*fromHeight])
		}
	}
	return out
}

// weightBits are the bits behind the point of weights.
const weightBits = 22

// weights are those of numbers from the first one on, of which one is made.
type weights struct {
	first int
	w     []int32
}

func (w weights) of(from []uint8) uint8 {
	sum := int64(1) << (weightBits - 1)
	from = from[w.first:]
	from = from[:len(w.w)]
	for i, x := range w.w {
		sum += int64(x) * int64(from[i])
	}
	return uint8(min(max(sum>>weightBits, 0), 255))
}

// lanczos returns the weights that make n numbers of so many.
func lanczos(of, n int) []weights {
	const lobes = 3
	scale := float64(of) / float64(n)
	stretch := max(scale, 1) // a larger picture is interpolated, a smaller one averaged
	all := make([]weights, n)
	for i := range all {
		// Conversions forbid fused operations, which round otherwise on some machines.
		center, reach := float64((float64(i)+.5)*scale), float64(lobes*stretch)
		first := max(0, int(center-reach+.5))
		end := min(of, int(center+reach+.5))
		exact, sum := make([]float64, end-first), 0.
		for j := range exact {
			if x := (float64(first+j) - center + .5) / stretch; -lobes <= x && x < lobes {
				exact[j] = float64(sinc(x) * sinc(x/lobes))
			}
			sum += exact[j]
		}
		all[i] = weights{first, make([]int32, len(exact))}
		for j, x := range exact {
			all[i].w[j] = int32(math.Round(x / sum * (1 << weightBits)))
		}
	}
	return all
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}
