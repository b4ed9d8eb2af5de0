package cells

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// An Entry has the data of a vector in an index: its cell, and a code of its position relative to the centre.
//
// Let r be the vector less the centre, in D coordinates, and s the signs of r over sqrt(D), a unit vector.
// With f = s.r / |r| the product of r with any y is about |r| s.y / f: the error has no bias over rotations,
// and a standard deviation of |r| |y| sqrt(1/f^2 - 1) / sqrt(D-1) (Gao and Long, RaBitQ, SIGMOD 2024). For a
// query q take y = q - c: near the cell it is short. s.c is known, so only q itself has to be multiplied.
//
//	|x-q|^2 = |r|^2 + |q-c|^2 - 2 r.(q-c) ~ (|r|^2 + 2 |r| s.c / f) + |q-c|^2 - 2 |r|/f s.q
//	-2 x.q  = -2 c.q - 2 r.c - 2 r.(q-c)  ~ (-2 r.c + 2 |r| s.c / f) - 2 c.q - 2 |r|/f s.q
//
// The first is the distance for L2, and for a cosine, which is 1 - |x-q|^2 / 2 of vectors of length
// 1; the second is the distance for Dot. So the nearest has the least.
type Entry struct {
	Cell   uint32
	slope  float32 // 2 |r| / (f sqrt(D)): times the sum of coordinates of q by the signs of r
	base   float32 // the term in brackets
	spread float32 // 2 |r| sqrt(1/f^2 - 1) / sqrt(D-1): times |q-c| a standard deviation
	code   []byte  // the signs of r, a bit each: 1 is not negative
}

// EntryBytes returns the stored length of an entry of vectors of so many dimensions.
func EntryBytes(dims int) int { return entryNumbers + Size(dims)/8 }

const entryNumbers = 16

// Append appends the entry in the form that DecodeEntry reads: the cell, three float32, the code;
// little-endian.
func (e *Entry) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, e.Cell)
	for _, v := range []float32{e.slope, e.base, e.spread} {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return append(dst, e.code...)
}

// DecodeEntry reads an entry of vectors of so many dimensions. Its code is in b.
func DecodeEntry(b []byte, dims int) (e Entry, err error) {
	if len(b) != EntryBytes(dims) {
		return e, errors.New("an entry of another length")
	}
	e.Cell = binary.LittleEndian.Uint32(b)
	for i, to := range []*float32{&e.slope, &e.base, &e.spread} {
		*to = math.Float32frombits(binary.LittleEndian.Uint32(b[4+4*i:]))
		if v := float64(*to); math.IsNaN(v) || math.IsInf(v, 0) {
			return e, errors.New("an entry with a number that is not finite")
		}
	}
	if e.slope < 0 || e.spread < 0 {
		return e, errors.New("an entry with a length below 0")
	}
	e.code = b[entryNumbers:]
	return e, nil
}

// Encode makes the entry of a vector, given by its coordinates, in a cell. It reuses the memory of the code
// of e.
func (c *Centres) Encode(e *Entry, x []float32, cell uint32) {
	e.Cell = cell
	if !HasPlace(x) { // it may be anywhere
		e.code = make([]byte, len(x)/8)
		e.slope, e.base, e.spread = 0, 0, math.MaxFloat32
		return
	}
	e.encode(c.Metric, x, c.cells[cell].Centre)
	if c.Metric == Cosine && IsZero(x) { // no vector has a smaller cosine than all that it has
		e.slope, e.base, e.spread = 0, farthest, 0
	}
}

// farthest is the square of the largest distance between vectors of length 1.
const farthest = 4

// IsZero reports whether a vector is zero in all dimensions, and so has no direction.
func IsZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// encode is Encode around a centre. Sums are in a fixed order, and nothing is multiplied and added in
// one step, so that every machine makes the same entry.
func (e *Entry) encode(metric Metric, x, centre []float32) {
	if len(e.code) != len(x)/8 {
		e.code = make([]byte, len(x)/8)
	}
	var square, sum, along, with float64
	for i := range e.code {
		negative := uint64(0) // bits
		y8 := centre[8*i:][:8]
		for j, v := range x[8*i:][:8] {
			y := float64(y8[j])
			r := float64(v) - y
			square += float64(r * r)
			with += float64(r * y)
			// Half of the signs are negative, in no order: branches would be guessed wrong.
			sign := math.Float64bits(r+0) & (1 << 63) // -0 + 0 is 0
			sum += math.Abs(r)
			along += math.Float64frombits(math.Float64bits(y) ^ sign)
			negative |= sign >> (63 - j)
		}
		e.code[i] = ^byte(negative)
	}
	if e.slope, e.base, e.spread = 0, 0, 0; sum == 0 {
		return
	}
	// |r|/f = |r|^2 sqrt(D) / sum of |r_i|
	d := float64(len(x))
	over := square / sum // |r| / (f sqrt(D))
	base := square
	if metric == Dot {
		base = -2 * with
	}
	e.slope = float32(2 * over)
	e.base = float32(base + float64(2*over*along))
	e.spread = float32(2 * math.Sqrt(max(0, float64(over*over*d)-square)) / math.Sqrt(d-1))
}

// Equal reports whether two entries are the same.
func (e *Entry) Equal(o *Entry) bool {
	return e.Cell == o.Cell && e.slope == o.slope && e.base == o.base && e.spread == o.spread &&
		bytes.Equal(e.code, o.code)
}

// square returns |r|^2 of vectors with D coordinates.
func (e *Entry) square(d int) float64 {
	a, b := float64(e.slope), float64(e.spread)
	return max(0, (a*a*float64(d)-b*b*float64(d-1))/4)
}

// with returns r.c of an entry for Dot.
func (e *Entry) with(centre []float32) float64 {
	var signed float64 // the sum of coordinates of c by the signs of r
	for i, eight := range e.code {
		for j, y := range centre[8*i:][:8] {
			sign := uint64(^eight>>j&1) << 63
			signed += math.Float64frombits(math.Float64bits(float64(y)) ^ sign)
		}
	}
	return (float64(e.slope)*signed - float64(e.base)) / 2
}

// mostSquare returns an upper bound of |r|^2 that holds despite rounding.
func (e *Entry) mostSquare(d int) float64 {
	if e.spread == math.MaxFloat32 { // it may be anywhere
		return math.Inf(1)
	}
	return e.square(d) + 1e-5*float64(e.slope)*float64(e.slope)*float64(d)
}
