package quant

import (
	"math"
	"unsafe"
)

// MaxDims is the largest number of dimensions: the square of a longer vector of 8-bit numbers
// might need more than 31 bits.
const MaxDims = math.MaxInt32 / (128 * 128)

// A Query is a vector to compare others with: 16 bits a dimension, in the direction of the
// vector that it was made of. It never changes.
type Query struct {
	v       []int16 // dims numbers, and zeros up to a multiple of eight
	inverse float32 // 1 / length of v
}

// NewQuery returns the query in the direction of z, which has up to MaxDims dimensions. It
// returns nil if z has no direction: it is zero, or its length is not finite.
//
// The largest component becomes 32767, or less in many dimensions: the sum of all components
// times 128 has to fit in 31 bits, so that no product with a vector can overflow.
func NewQuery(z []float64) *Query {
	v, unit := quantise(z)
	if unit == 0 {
		return nil
	}
	squares := 0.0
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	return &Query{v: v, inverse: float32(1 / math.Sqrt(squares))}
}

// quantise returns z as numbers of 16 bits, with zeros up to a multiple of eight, and what they
// count: 0 if z is zero, or its length is not finite.
func quantise(z []float64) (v []int16, unit float64) {
	v = make([]int16, stride(len(z)))
	largest, sum := 0.0, 0.0
	for _, x := range z {
		largest, sum = max(largest, math.Abs(x)), sum+math.Abs(x)
	}
	if largest == 0 || !(sum <= math.MaxFloat64) {
		return v, 0
	}
	// In this order nothing overflows, however large or small z is. Rounding adds less than 1 a
	// dimension to the sum of what follows.
	scale := min(math.MaxInt16, (math.MaxInt32/128-float64(len(z)))/(sum/largest))
	for i, x := range z {
		v[i] = int16(math.RoundToEven(x / largest * scale))
	}
	return v, largest / scale
}

// stride returns how many numbers a vector of so many dimensions takes: the kernels take
// eight at a time.
func stride(dims int) int { return (dims + 7) &^ 7 }

// similarity returns the cosine between the query and the vector that d is of, and 0 for a
// vector of zeros. Each operation rounds to float32 and none adds, so that no machine can
// contract two of them and get another result.
func (q *Query) similarity(d dot) float32 {
	if d.square == 0 {
		return 0
	}
	s := float32(d.product) / float32(math.Sqrt(float64(float32(d.square))))
	return max(-1, min(s*q.inverse, 1))
}

// least returns a bound for the squares of products: where a product is not above 0, or its square
// is less than the bound times the square of the vector, the similarity is not above floor. There
// is a margin for rounding. The bound is negative where there is none.
func (q *Query) least(floor float32) float64 {
	if floor < 0 {
		return -1
	}
	x := float64(floor) / float64(q.inverse)
	return x * x * (1 - 1e-5)
}

// Similarity returns the cosine between the query and a vector, whose numbers are signed
// bytes, as many as the query has dimensions; 0 for a vector of zeros.
func (q *Query) Similarity(v []byte) float32 {
	var d [1]dot
	if len(v) == len(q.v) {
		dots(d[:], q.v, []*int8{(*int8)(unsafe.Pointer(&v[0]))}, 1)
	} else { // its last dimensions do not fill a vector of eight
		for i, x := range v {
			d[0].product += int32(q.v[i]) * int32(int8(x))
			d[0].square += int32(int8(x)) * int32(int8(x))
		}
	}
	return q.similarity(d[0])
}

// scanRows is the number of vectors that are compared at a time: what is found of them stays in
// the cache.
const scanRows = 256

// Each compares the query with the vectors of rows, which ascend and are below Covered. It
// calls f with each row whose similarity exceeds floor, in order; f returns the floor from
// then on, so that a search for the best rows raises it. A row that has no vector has the
// similarity 0. Each allocates nothing.
func (t *Table) Each(q *Query, rows []uint32, floor float32, f func(row uint32, similarity float32) float32) {
	if len(rows) <= 16 { // as of most codes: then even to clear the scratch memory would take longer
		var vectors [16]*int8
		var found [16]dot
		t.each(q, rows, floor, f, vectors[:], found[:])
		return
	}
	var vectors [scanRows]*int8
	var found [scanRows]dot
	t.each(q, rows, floor, f, vectors[:], found[:])
}

// each is Each with scratch memory.
func (t *Table) each(q *Query, rows []uint32, floor float32, f func(row uint32, similarity float32) float32,
	vectors []*int8, found []dot) {
	for len(rows) > 0 {
		n := min(len(rows), len(vectors))
		t.find(vectors[:n], rows[:n])
		floor = q.above(rows[:n], vectors[:n], found[:n], floor, f)
		rows = rows[n:]
	}
}

// EachOf is Each for several queries at once, each with a floor, which it raises: f is also told
// the number of the query. A vector is fetched once for all of them.
func (t *Table) EachOf(queries []*Query, rows []uint32, floors []float32,
	f func(query int, row uint32, similarity float32) float32) {
	var vectors [scanRows]*int8
	var found [scanRows]dot
	for len(rows) > 0 {
		n := min(len(rows), scanRows)
		t.find(vectors[:n], rows[:n])
		for i, q := range queries {
			floors[i] = q.above(rows[:n], vectors[:n], found[:n], floors[i],
				func(row uint32, similarity float32) float32 {
					return f(i, row, similarity)
				})
		}
		rows = rows[n:]
	}
}

// above compares the query with vectors, which are those of rows, and calls f with those above
// floor, as Each does. It returns the last floor.
func (q *Query) above(rows []uint32, vectors []*int8, found []dot, floor float32,
	f func(row uint32, similarity float32) float32) float32 {
	dots(found, q.v, vectors, min(len(q.v), 2*cacheLine))
	least := q.least(floor)
	for i, d := range found {
		// A square root and a division take longer than the product. Nearly all rows are told
		// from those above the floor without.
		if p := float64(d.product); least >= 0 && (p <= 0 || p*p < least*float64(d.square)) {
			continue
		}
		if s := q.similarity(d); s > floor {
			floor = f(rows[i], s)
			least = q.least(floor)
		}
	}
	return floor
}
