package cells

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// A Query is a vector that others are compared with. It belongs to one goroutine.
type Query struct {
	x      []float32 // coordinates
	square float64   // of its length
	rounded
	rest  *Query // the rounding error, for cells that are near, see Scan
	fresh bool   // rest is up to date with x

	found    []float32 // of a scan
	hits     []byte
	promised []promised // of Nearest
}

// rounded is a vector in 4 bits a coordinate.
type rounded struct {
	planes []uint64 // four for each word of a code, see Set
	tables []uint64 // for AVX2 the planes in another form, see tabulate; else nil
	step   float32  // value of one unit of planes
}

// NewQuery returns a query of vectors of a geometry, for Set.
func (g *Geometry) NewQuery() *Query { return newQuery(g.size) }

func newQuery(size int) *Query {
	q := &Query{x: make([]float32, size), rounded: rounded{planes: make([]uint64, size/16)}}
	if active == simd.AVX2 {
		q.tables = make([]uint64, size/2)
	}
	return q
}

// Set sets the vector of the query to these coordinates, which it copies.
//
// A coordinate is rounded to one of the 16 odd multiples w of a step, from -15 to 15. With the bits
// b_j of (w + 15) / 2 it is w = sum 2^j (2 b_j - 1), so the sum over coordinates of s_i w_i, with s_i
// = 1 or -1, is sum 2^j (D - 2 h_j), where h_j is the Hamming distance between the signs and plane
// j of bits. So a code costs four Hamming distances.
func (q *Query) Set(x []float32) {
	copy(q.x, x)
	q.fresh = false
	square, largest := sizeOf(q.x)
	q.square = square
	clear(q.planes)
	q.step = 0
	if largest == 0 { // with a step of 0 no sum counts
		return
	}
	// Few coordinates are as large as the largest: a smaller step gains more than it loses on these.
	q.step = min(largest, float32(3.2*math.Sqrt(q.square/float64(len(x))))) / 15
	inverse := 1 / (2 * q.step)
	for w := range len(q.x) / 64 {
		planes := q.planes[4*w:][:4]
		for i := range 8 {
			eight := uint64(0) // numbers below 16, in a byte each
			for j, v := range q.x[64*w+8*i:][:8] {
				eight |= uint64(max(0, min(int(v*inverse+8), 15))) << (8 * j) // (v/step + 15) / 2, rounded
			}
			for p := range planes {
				planes[p] |= lowBits(eight>>p) << (8 * i)
			}
		}
	}
	if q.tables != nil {
		tabulate(q.tables, q.planes)
	}
}

// setRest sets rest to the rounding error of the vector.
func (q *Query) setRest() {
	if q.fresh {
		return
	}
	if q.rest == nil {
		q.rest = newQuery(len(q.x))
	}
	left := make([]float32, len(q.x))
	for i, v := range q.x {
		left[i] = v
		if q.step > 0 {
			w := 2*max(0, min(int(v/(2*q.step)+8), 15)) - 15
			left[i] = v - float32(w)*q.step
		}
	}
	q.rest.Set(left)
	q.fresh = true
}

// sizeOf returns the square of the length of a vector, and the largest absolute coordinate.
func sizeOf(x []float32) (square float64, largest float32) {
	var s0, s1, s2, s3 float64 // each waits for its last addition alone
	most := uint32(0)          // as bits, which sort like the numbers if none is negative
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := x[0], x[1], x[2], x[3]
		s0 += float64(a) * float64(a)
		s1 += float64(b) * float64(b)
		s2 += float64(c) * float64(c)
		s3 += float64(d) * float64(d)
		const positive = 1<<31 - 1
		most = max(most, math.Float32bits(a)&positive, math.Float32bits(b)&positive,
			math.Float32bits(c)&positive, math.Float32bits(d)&positive)
	}
	return (s0 + s1) + (s2 + s3), math.Float32frombits(most)
}

// lowBits returns the lowest bits of eight bytes, as bits of one.
func lowBits(eight uint64) uint64 {
	// The product has bit 8 i of the first factor at 56 + i, and nothing that is carried there.
	return (eight & 0x0101010101010101) * 0x0102040810204080 >> 56
}

// room returns memory for the results of a scan of n codes.
func (q *Query) room(n int) (found []float32, hits []byte) {
	groups := (n + lanes - 1) / lanes
	if len(q.hits) < groups {
		q.hits, q.found = make([]byte, groups), make([]float32, groups*lanes)
	}
	return q.found[:groups*lanes], q.hits[:groups]
}

// scaleFor returns the scale for codes of a cell, given the square of the distance of its centre from the
// query. Distances may be sure standard deviations less.
func (q *Query) scaleFor(size int, square, sure, floor float64) scale {
	return scale{
		far: float32(square), unit: 2 * q.step, zero: -15 * float32(size) * q.step,
		reach: float32(sure) * q.deviation(square), floor: float32(floor),
	}
}

// deviation is what the spread of a code is multiplied by for a standard deviation. It is the distance
// from the centre, and what rounding the query adds.
func (q *Query) deviation(square float64) float32 { return float32(math.Sqrt(square + q.rounding())) }

// rounding returns the square of what rounding adds to a deviation: each of D coordinates is wrong by 2
// step / sqrt(12) on average, so their sum by sqrt(D) times that, and a slope counts it. A spread is
// about sqrt(1 - f^2) slopes, and f about sqrt(2/pi).
func (q *Query) rounding() float64 {
	return float64(len(q.x)) * float64(q.step) * float64(q.step) * roundingSquare
}

const roundingSquare = 1 / (3 * (1 - 2/math.Pi))

// Product returns x.y of vectors with a multiple of 32 coordinates. All kernels add up in the same
// order, and multiply before they add, so that they find the same.
func Product(x, y []float32) float32 {
	return productBy(active, x, y[:len(x)])
}

// productGeneric adds up every 32nd product. Then it adds the upper half of the sums to the lower until
// one is left.
func productGeneric(x, y []float32) float32 {
	var sums [32]float32
	for i := 0; i < len(x); i += len(sums) {
		p, q := x[i:][:len(sums)], y[i:][:len(sums)]
		for j := range sums {
			sums[j] += float32(p[j] * q[j])
		}
	}
	for n := len(sums) / 2; n > 0; n /= 2 {
		for j := range n {
			sums[j] += sums[j+n]
		}
	}
	return sums[0]
}

// tabulate makes tables of the planes for the kernel for AVX2, which has no instruction to count bits, but
// one that looks up 32 bytes at once. A table has the weighted sum of the distances from all planes for each
// value of four bits of a code, a byte each: 16 bytes, two numbers of dst. The tables of a word are in the
// order in which the kernel loads them: for the lower four bits of its bytes 0 and 1, for the upper four, and
// the same for bytes 2 and 3, 4 and 5, 6 and 7.
func tabulate(dst, planes []uint64) {
	for w := range len(planes) / 4 {
		p := planes[4*w:][:4]
		for nibble := range 16 {
			b, shift := nibble/2, 4*nibble
			table := dst[32*w+b/2*8+nibble%2*4+b%2*2:][:2]
			d0, d1, d2, d3 := &differing[p[0]>>shift&15], &differing[p[1]>>shift&15],
				&differing[p[2]>>shift&15], &differing[p[3]>>shift&15]
			table[0] = d0[0] + d1[0]<<1 + d2[0]<<2 + d3[0]<<3
			table[1] = d0[1] + d1[1]<<1 + d2[1]<<2 + d3[1]<<3
		}
	}
}

// differing has for each two numbers of four bits in how many bits they differ, a byte each.
var differing = func() (all [16][2]uint64) {
	for p := range uint(16) {
		for v := range uint(16) {
			all[p][v/8] |= uint64(bits.OnesCount(p^v)) << (v % 8 * 8)
		}
	}
	return all
}()
