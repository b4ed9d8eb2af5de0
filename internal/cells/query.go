package cells

import (
	"math"
)

// A Query is a vector that others are compared with. It belongs to one goroutine.
type Query struct {
	x      []float32 // coordinates
	square float64   // of its length
	planes []uint64  // four for each word of a code, see Set
	tables []uint64  // for AVX2 the planes in another form, see tabulate; else nil
	step   float32   // what a unit of planes counts

	found []float32 // of a scan
	hits  []byte
}

// NewQuery returns a query of vectors of a geometry, for Set.
func (g *Geometry) NewQuery() *Query {
	q := &Query{x: make([]float32, g.size), planes: make([]uint64, g.size/16)}
	if active == avx2 {
		q.tables = make([]uint64, g.size/2)
	}
	return q
}

// Set makes the vector with these coordinates the one of the query, which copies them.
//
// A coordinate is rounded to one of the 16 odd multiples w of a step, from -15 to 15. With the bits
// b_j of (w + 15) / 2 it is w = sum 2^j (2 b_j - 1), so the sum over coordinates of s_i w_i, with s_i
// = 1 or -1, is sum 2^j (D - 2 h_j), where h_j is the Hamming distance between the signs and plane
// j of bits. So a code costs four Hamming distances.
func (q *Query) Set(x []float32) {
	copy(q.x, x)
	q.square = 0
	largest := float32(0)
	for _, v := range q.x {
		q.square += float64(v) * float64(v)
		largest = max(largest, float32(math.Abs(float64(v))))
	}
	clear(q.planes)
	q.step = 0
	if largest == 0 { // with a step of 0 no sum counts
		return
	}
	// Few coordinates are as large as the largest: a smaller step is worth more than these.
	q.step = min(largest, float32(3.2*math.Sqrt(q.square/float64(len(x))))) / 15
	inverse := 1 / (2 * q.step)
	for w := range len(q.x) / 64 {
		var p0, p1, p2, p3 uint64
		for i, v := range q.x[64*w:][:64] {
			u := uint64(max(0, min(int(v*inverse+8), 15))) // (v/step + 15) / 2, rounded
			p0 |= u & 1 << i
			p1 |= u >> 1 & 1 << i
			p2 |= u >> 2 & 1 << i
			p3 |= u >> 3 << i
		}
		copy(q.planes[4*w:], []uint64{p0, p1, p2, p3})
	}
	if q.tables != nil {
		tabulate(q.tables, q.planes)
	}
}

// room returns memory for the results of a scan of n codes.
func (q *Query) room(n int) (found []float32, hits []byte) {
	groups := (n + lanes - 1) / lanes
	if len(q.hits) < groups {
		q.hits, q.found = make([]byte, groups), make([]float32, groups*lanes)
	}
	return q.found[:groups*lanes], q.hits[:groups]
}

// scaleFor returns the scale for codes of a cell whose centre is at a distance of the query, of which
// it has the square. Distances are allowed to be so many standard deviations less.
func (q *Query) scaleFor(size int, square, sure, floor float64) scale {
	return scale{
		far: float32(square), unit: 2 * q.step, zero: -15 * float32(size) * q.step,
		reach: float32(sure) * q.deviation(square), floor: float32(floor),
	}
}

// deviation is what the spread of a code is multiplied by for a standard deviation. It is the distance
// from the centre, and what rounding the query adds: each of D coordinates is wrong by 2 step /
// sqrt(12) on average, so their sum by sqrt(D) times that, and a slope counts it. A spread is about
// sqrt(1 - f^2) slopes, and f about sqrt(2/pi).
func (q *Query) deviation(square float64) float32 {
	d := float64(len(q.x))
	return float32(math.Sqrt(square + d*float64(q.step)*float64(q.step)*roundingSquare))
}

const roundingSquare = 1 / (3 * (1 - 2/math.Pi))
