package perceptual

import (
	"image"
	"image/color"
	"math"
	"slices"
)

const (
	pdqSide  = 64  // sides of the blurred picture
	pdqFreqs = 16  // frequencies a side, the lowest but that of the mean
	pdqMost  = 512 // sides of the largest picture that is hashed as it is
	pdqLeast = 5   // sides of the smallest picture that has a hash
)

// A spectrum has the frequencies 1 to 16 of a picture: row i, column j is frequency i+1 from top to bottom
// and j+1 from left to right.
type spectrum [pdqFreqs][pdqFreqs]float32

// PDQ returns the PDQ hash of a picture: 32 bytes, with 128 of the 256 bits set. hex.EncodeToString
// returns the digits that the reference program prints. The quality, from 0 to 100, says how much there is to
// see; the authors advise to ignore hashes below 50. Two pictures are copies when their codes differ in at
// most 31 bits.
//
// Equal pixels have the hash of the reference to the last bit. Its decoder of JPEG is another one, so a JPEG
// may differ in a few bits. As the reference does, PDQ reads 512 x 512 pixels of a larger picture. A picture
// with a side below 5 pixels has the code 0 and the quality 0.
//
// PDQ takes some 6 ms and 2.1 MB of memory, whatever the size of the picture.
//
// Source: "The TMK+PDQF Video-Hashing Algorithm and the PDQ Image-Hashing Algorithm", Facebook, 2019.
func PDQ(m image.Image) (code []byte, quality int) {
	s, quality := newSpectrum(m)
	return s.code(), quality
}

// PDQTurns returns the PDQ hashes of the eight turns and mirrors of a picture, and their quality. It costs as
// much as PDQ: the frequencies of a turned picture are those of the original in another order, with other
// signs. The hash of a picture that was turned and saved differs in a few bits.
//
//	codes[0]  the picture as it is, as of PDQ
//	codes[1]  turned by 90 degrees, counterclockwise
//	codes[2]  turned by 180 degrees
//	codes[3]  turned by 270 degrees, counterclockwise
//	codes[4]  mirrored, top to bottom
//	codes[5]  mirrored, left to right
//	codes[6]  mirrored at the diagonal from the top left to the bottom right
//	codes[7]  mirrored at the other diagonal
//
// The order is that of the reference program: original, rotate 90, 180, 270, flip x, flip y, flip plus 1,
// flip minus 1.
func PDQTurns(m image.Image) (codes [8][]byte, quality int) {
	s, quality := newSpectrum(m)
	for i, t := range turns {
		turned := s.turned(t)
		codes[i] = turned.code()
	}
	return codes, quality
}

// A turn mirrors at the diagonal first, then top to bottom and left to right.
type turn struct{ diagonal, down, across bool }

var turns = [8]turn{{}, {diagonal: true, down: true}, {down: true, across: true},
	{diagonal: true, across: true}, {down: true}, {across: true}, {diagonal: true},
	{diagonal: true, down: true, across: true}}

// turned returns the spectrum of the turned picture. A mirror negates the odd frequencies in its direction,
// which are the even rows or columns.
func (s *spectrum) turned(t turn) (out spectrum) {
	for i := range out {
		for j := range out[i] {
			x := s[i][j]
			if t.diagonal {
				x = s[j][i]
			}
			if (t.down && i%2 == 0) != (t.across && j%2 == 0) {
				x = -x
			}
			out[i][j] = x
		}
	}
	return out
}

// code returns a bit for each frequency: whether it is above the median, the lower one of the two in the
// middle. The last bit is the first frequency, as the reference prints them.
func (s *spectrum) code() []byte {
	all := make([]float32, 0, pdqFreqs*pdqFreqs)
	for i := range s {
		all = append(all, s[i][:]...)
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	median := sorted[len(sorted)/2-1]
	code := make([]byte, len(all)/8)
	for i, x := range all {
		if x > median {
			code[len(code)-1-i/8] |= 1 << (i % 8)
		}
	}
	return code
}

// newSpectrum returns the spectrum of a picture and its quality; 0 and 0 of a picture that is too small.
func newSpectrum(m image.Image) (s spectrum, quality int) {
	width, height := m.Bounds().Dx(), m.Bounds().Dy()
	if width < pdqLeast || height < pdqLeast {
		return s, 0
	}
	var small [pdqSide][pdqSide]float32
	luma, width, height := pdqLuma(m)
	if width != pdqSide || height != pdqSide { // a picture of that size is not blurred
		blur(luma, width, height)
	}
	for i := range small {
		y := (2*i + 1) * height / (2 * pdqSide)
		for j := range small[i] {
			small[i][j] = luma[y*width+(2*j+1)*width/(2*pdqSide)]
		}
	}
	return transformed(&small), quality64(&small)
}

// pdqLuma returns the brightness of a picture, row by row. If a side is longer than 512, both become 512: a
// pixel stands for its surroundings.
func pdqLuma(m image.Image) (luma []float32, width, height int) {
	width, height = m.Bounds().Dx(), m.Bounds().Dy()
	outWidth, outHeight := width, height
	if width > pdqMost || height > pdqMost {
		outWidth, outHeight = pdqMost, pdqMost
	}
	model := m.ColorModel()
	grey := model == color.GrayModel || model == color.Gray16Model
	xs, row, read := sampled(width, outWidth), make([]rgb, outWidth), newRowReader(m)
	luma = make([]float32, 0, outWidth*outHeight)
	for _, y := range sampled(height, outHeight) {
		read(row, y, xs)
		for _, c := range row {
			if grey { // the weights do not quite add up to 1
				luma = append(luma, float32(c.r))
				continue
			}
			// Conversions forbid fused operations, which round otherwise on some machines.
			luma = append(luma, float32(0.299*float32(c.r))+float32(0.587*float32(c.g))+
				float32(0.114*float32(c.b)))
		}
	}
	return luma, outWidth, outHeight
}

// blur blurs a picture, so that each of 64 x 64 pixels stands for its part: two means over half a part, in
// both directions, make a tent.
func blur(luma []float32, width, height int) {
	other := make([]float32, len(luma))
	window := func(side int) int { return (side + 2*pdqSide - 1) / (2 * pdqSide) }
	for range 2 {
		for y := range height {
			means(other[y*width:], luma[y*width:], width, 1, window(width))
		}
		for x := range width {
			means(luma[x:], other[x:], height, width, window(height))
		}
	}
}

// means stores the mean of each of n numbers and its neighbours: so many numbers in all, fewer at the ends.
// The numbers are stride apart. The order of additions is that of the reference, as it decides on bits.
func means(dst, src []float32, n, stride, window int) {
	after := window / 2 // neighbours after a number
	before := window - 1 - after
	sum := float32(0)
	for i := range after {
		sum += src[i*stride]
	}
	size := after
	for i := range n {
		if in := i + after; in < n {
			sum += src[in*stride]
			size++
		}
		if out := i - before - 1; out >= 0 {
			sum -= src[out*stride]
			size--
		}
		dst[i*stride] = sum / float32(size)
	}
}

// quality64 returns the quality of a picture: the sum of the steps between neighbours, in percent of the
// whole range and rounded down, so that small steps do not count. 9,000 is as good as any more.
func quality64(a *[pdqSide][pdqSide]float32) int {
	sum := 0
	step := func(u, v float32) {
		d := int((u - v) * 100 / 255)
		sum += max(d, -d)
	}
	for i := range a {
		for j := range a[i] {
			if i+1 < len(a) {
				step(a[i][j], a[i+1][j])
			}
			if j+1 < len(a) {
				step(a[i][j], a[i][j+1])
			}
		}
	}
	return min(100, sum/90)
}

// cosines are the rows 1 to 16 of the matrix of the discrete cosine transform of 64 numbers.
var cosines = func() (d [pdqFreqs][pdqSide]float32) {
	scale := float64(float32(math.Sqrt(2. / pdqSide)))
	for i := range d {
		for j := range d[i] {
			d[i][j] = float32(scale * math.Cos(math.Pi/2/pdqSide*float64((i+1)*(2*j+1))))
		}
	}
	return d
}()

// transformed returns D a D', where D is cosines: the lowest frequencies without that of the mean.
func transformed(a *[pdqSide][pdqSide]float32) (s spectrum) {
	for i := range s {
		var row [pdqSide]float32 // of D a
		for k := range a {
			for j := range row {
				row[j] += float32(cosines[i][k] * a[k][j])
			}
		}
		for j := range s[i] {
			for k, x := range row {
				s[i][j] += float32(x * cosines[j][k])
			}
		}
	}
	return s
}
