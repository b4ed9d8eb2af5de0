package quant

import (
	"encoding/binary"
	"math"
)

// Vectors whose length matters stand in tables as 8-bit numbers v, a unit u, and the distance e
// between the vector itself and u v. A bound follows: the distance of a vector x from a query y
// differs from that of u v by at most e, by the triangle inequality; and what the query loses by
// its own rounding adds to that. So a table tells that a vector is too far away without it.

// lengthBytes is what stands behind the numbers of a vector: u and e, as float32.
const lengthBytes = 8

// VectorBytes returns the length of a vector of so many dimensions in a table, which is that of
// an element of AppendVector.
func VectorBytes(dims int) int { return stride(dims) + lengthBytes }

// AppendVector appends x, whose numbers are finite, in the form that tables keep: numbers of 8
// bits, zeros up to a multiple of eight, the unit, and the distance from x, rounded up.
func AppendVector(dst []byte, x []float32) []byte {
	largest := 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(float64(v)))
	}
	unit := float32(largest / 127)
	lost := 0.0
	for _, v := range x {
		q := 0.0
		if unit > 0 { // a vector of the smallest numbers that there are has none
			q = max(-127, min(math.RoundToEven(float64(v)/float64(unit)), 127))
		}
		d := float64(v) - q*float64(unit)
		lost += d * d
		dst = append(dst, byte(int8(q)))
	}
	dst = append(dst, make([]byte, stride(len(x))-len(x))...)
	dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(unit))
	up := math.Nextafter32(float32(math.Sqrt(lost)*(1+1e-12)), float32(math.Inf(1)))
	return binary.LittleEndian.AppendUint32(dst, math.Float32bits(up))
}

// A VectorQuery is a vector to measure the distance of others from. It never changes.
type VectorQuery struct {
	v      []int16 // as in Query
	unit   float64 // what v counts
	square float64 // of the length of unit v
	lost   float64 // the distance between the vector and unit v
}

// NewVectorQuery returns the query of a vector, whose numbers are finite, of up to MaxDims
// dimensions.
func NewVectorQuery(x []float32) *VectorQuery {
	z := make([]float64, len(x))
	for i, v := range x {
		z[i] = float64(v)
	}
	q := &VectorQuery{}
	q.v, q.unit = quantise(z)
	for i, v := range z {
		w := float64(q.v[i]) * q.unit
		q.square += w * w
		q.lost += (v - w) * (v - w)
	}
	q.lost = math.Sqrt(q.lost)
	return q
}

// AtLeast fills in a bound for each row, which is below Covered and has a vector: the square of
// the Euclidean distance between the vector of the row and that of the query is not less. len(dst)
// is len(rows); the rows come in any order.
func (t *Table) AtLeast(q *VectorQuery, dst []float64, rows []uint32) {
	var vectors [64]*int8
	var found [64]dot
	for len(rows) > 0 {
		n := min(len(rows), len(vectors))
		t.find(vectors[:n], rows[:n])
		dots(found[:n], q.v, vectors[:n])
		for i, d := range found[:n] {
			unit, lost := lengths(vectors[i], len(q.v))
			square := unit * unit * float64(d.square)
			distance := math.Sqrt(max(0, square+q.square-2*unit*q.unit*float64(d.product)))
			// What float64 rounds off of a difference of squares is at most some 1e-15 of
			// them, and a hundred-millionth of the lengths after the root.
			margin := 1e-7 * (math.Sqrt(square) + math.Sqrt(q.square))
			least := max(0, distance-lost-q.lost-margin)
			dst[i] = least * least * (1 - 1e-12)
		}
		dst, rows = dst[n:], rows[n:]
	}
}

// EachCosine calls f with each row whose cosine with the query may be floor or more, and with bounds
// of it; f returns the floor from then on. The rows are below Covered; one that has no vector counts
// as a vector of zeros, whose cosine is 0.
//
// The angle between a vector and what stands for it is at most asin(e / |u v|), and so is that of
// the query. The angle between vector and query differs by no more than the sum of these from the
// angle of what stands for them. cos(a-b) = cos a cos b + sin a sin b.
func (t *Table) EachCosine(q *VectorQuery, rows []uint32, floor float32, f func(row uint32, least, most float32) float32) {
	const margin = 1e-6 // more than float64 rounds off, and float32 of the results
	var vectors [64]*int8
	var found [64]dot
	length := math.Sqrt(q.square)
	own := math.Inf(1)
	if length > 0 {
		own = q.lost / length
	}
	for len(rows) > 0 {
		n := min(len(rows), len(vectors))
		t.find(vectors[:n], rows[:n])
		dots(found[:n], q.v, vectors[:n])
		for i, d := range found[:n] {
			unit, lost := lengths(vectors[i], len(q.v))
			size := unit * math.Sqrt(float64(d.square))
			least, most := -1.0, 1.0
			switch {
			case size > 0:
				sine := lost/size + own
				c := max(-1, min(unit*q.unit*float64(d.product)/(size*length), 1))
				if max(c, 0)+sine+margin < float64(floor) {
					continue // most is not greater
				}
				if sine < 1 {
					cosine, across := math.Sqrt(1-sine*sine), sine*math.Sqrt(1-c*c)
					if c < cosine {
						most = c*cosine + across
					}
					if c > -cosine {
						least = c*cosine - across
					}
				}
			case lost == 0:
				least, most = 0, 0
			}
			if most = min(most+margin, 1); most < float64(floor) {
				continue
			}
			floor = f(rows[i], float32(max(least-margin, -1)), float32(most))
		}
		rows = rows[n:]
	}
}

// lengths returns the unit of the vector at p and its distance from what it stands for.
func lengths(p *int8, numbers int) (unit, lost float64) {
	b := bytesAt(p, numbers+lengthBytes)[numbers:]
	u, e := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return float64(math.Float32frombits(u)), float64(math.Float32frombits(e))
}
