package quant

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/fddhdb/fddhdb/internal/simd"
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
	squares := int64(0) // exact, as a sum of floats of many dimensions is not
	for i, v := range z {
		squares += int64(q.v[i]) * int64(q.v[i])
		w := float64(q.v[i]) * q.unit
		q.lost += (v - w) * (v - w)
	}
	q.square = q.unit * q.unit * float64(squares)
	q.lost = math.Sqrt(q.lost)
	return q
}

// distanceMargin is more than float64 rounds off a distance, as a share of the lengths of the two
// vectors: of a difference of squares some 1e-15 of them at most, which is less than a
// ten-millionth of the lengths after the root.
const distanceMargin = 1e-7

// A Metric says what EachBound bounds. The greater it is, the nearer are the vectors.
type Metric int

// Metrics.
const (
	Cosine         Metric = iota // of the angle between the vectors; 0 where one is zero
	Dot                          // their inner product
	SquaredL2Below               // the squared Euclidean distance between them, below 0: its negative
)

// EachBound calls f with each row whose metric with the query may be floor or more, and with bounds
// of it; f returns the floor from then on. The bounds are of the metric added up in float64 in any
// order, and then rounded to float32, or to the greatest or least float32 beyond the range. The rows
// are below Covered; one that has no vector counts as a vector of zeros.
//
// With x and y for the vectors, and x' and y' for what stands for them, at the distances e and f:
//
//   - The angle between x and x' is at most asin(e / |x'|), and so is that of the query. The angle
//     between x and y differs by no more than the sum of these from that between x' and y'.
//     cos(a-b) = cos a cos b + sin a sin b.
//   - xy - x'y' = x(y-y') + (x-x')y', which is at most (|x'| + e) f + e |y'|.
//   - |x-y| differs from |x'-y'| by at most e + f.
func (t *Table) EachBound(q *VectorQuery, metric Metric, rows []uint32, floor float32,
	f func(row uint32, least, most float32) float32) {
	var vectors [64 + ahead]*int8
	var found [64]dot
	known := 0 // vectors that were found with those before them
	span := len(q.v) + lengthBytes
	if len(rows) > 0 && int(rows[len(rows)-1]-rows[0]) < 4*len(rows) {
		span = min(span, 2*cacheLine) // the rest follows in order, which the processor sees by itself
	}
	length := math.Sqrt(q.square)
	own := math.Inf(1)
	if length > 0 {
		own = q.lost / length
	}
	for len(rows) > 0 {
		n, next := min(len(rows), len(found)), min(len(rows), len(vectors))
		t.find(vectors[known:next], rows[known:next])
		dots(found[:n], q.v, vectors[:next], span)
		for i, d := range found[:n] {
			unit, lost := lengths(vectors[i], len(q.v))
			size := unit * math.Sqrt(float64(d.square))
			product := unit * q.unit * float64(d.product)
			var least, most float32
			switch metric {
			case Cosine:
				c, sine := 0.0, lost/size+own
				if size > 0 {
					c = max(-1, min(product/(size*length), 1))
					if max(c, 0)+sine+cosineMargin < float64(floor) {
						continue // most is not greater
					}
				}
				least, most = boundCosine(c, sine, size == 0, lost)
			case Dot:
				// The margin is more than float64 rounds off in MaxDims dimensions.
				apart := (size+lost)*q.lost + lost*length + 1e-10*(size+lost)*(length+q.lost)
				least, most = Rounded(product-apart), Rounded(product+apart)
			default:
				distance := math.Sqrt(max(0, size*size+q.square-2*product))
				apart := lost + q.lost + distanceMargin*(size+length)
				near, far := max(0, distance-apart), distance+apart
				least, most = Rounded(-far*far), Rounded(-near*near)
			}
			if most >= floor {
				floor = f(rows[i], least, most)
			}
		}
		known = copy(vectors[:], vectors[n:next])
		rows = rows[n:]
	}
}

// cosineMargin is more than float64 rounds off a cosine, and float32.
const cosineMargin = 1e-6

// boundCosine returns bounds of a cosine, where that of what stands for the vectors is c, and the sum
// of their angles to it has at most that sine. A vector of zeros stands for zero, which is exact, or
// for one that is lost as a whole.
func boundCosine(c, sine float64, zero bool, lost float64) (float32, float32) {
	least, most := -1.0, 1.0
	switch {
	case zero && lost == 0:
		least, most = 0, 0
	case !zero && sine < 1:
		cosine, across := math.Sqrt(1-sine*sine), sine*math.Sqrt(1-c*c)
		if c < cosine {
			most = c*cosine + across
		}
		if c > -cosine {
			least = c*cosine - across
		}
	}
	return float32(max(least-cosineMargin, -1)), float32(min(most+cosineMargin, 1))
}

// Rounded returns x as a float32, or the greatest or least finite one beyond the range. It is
// monotone: so the bounds of a number, so rounded, are bounds of the number that is rounded so.
func Rounded(x float64) float32 {
	return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32)))
}

// lengths returns the unit of the vector at p and its distance from what it stands for.
func lengths(p *int8, numbers int) (unit, lost float64) {
	b := bytesAt(p, numbers+lengthBytes)[numbers:]
	u, e := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return float64(math.Float32frombits(u)), float64(math.Float32frombits(e))
}

// A dot is what a kernel finds for a vector v and a query q.
type dot struct {
	product int32 // sum of q[i]*v[i]
	square  int32 // sum of v[i]*v[i]
}

// The kernel of dots exists for each set of instructions. All give the same results. active is
// the fastest set that this machine can run; only tests change it.
var (
	sets   = simd.Sets(simd.VNNI)
	active = sets[0]
)

// dots fills in a dot for each of the first len(dst) vectors. A vector is a pointer to the first of
// len(query) numbers, which is a multiple of eight. Those beyond len(dst) come next: they are only
// fetched. So is the beginning of each vector, span bytes, some vectors before it is compared. The
// query is such that no product exceeds 32 bits, see NewQuery; squares cannot, up to MaxDims
// dimensions.
func dots(dst []dot, query []int16, vectors []*int8, span int) {
	if len(dst) > 0 {
		dotsBy(active, dst, query, vectors, span)
	}
}

const cacheLine = 64 // bytes

// ahead is how many vectors before it is compared a vector is fetched, as kernels have it.
const ahead = 16

func dotsGeneric(dst []dot, query []int16, vectors []*int8) {
	for i, p := range vectors[:len(dst)] {
		v := unsafe.Slice(p, len(query))
		var product, square int32
		for j, q := range query {
			x := int32(v[j])
			product += int32(q) * x
			square += x * x
		}
		dst[i] = dot{product, square}
	}
}
