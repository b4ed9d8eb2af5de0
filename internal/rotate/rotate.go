// Package rotate turns vectors by a random orthogonal map that takes O(d log d) additions and
// is stored as its seed alone.
//
// A dense random rotation of d dimensions takes d^2 multiplications a vector, and d^2 numbers of
// memory. A product of random signs and Walsh-Hadamard transforms spreads a vector as evenly over
// the dimensions, for the signs of its coordinates (Ailon and Chazelle, "The
// fast Johnson-Lindenstrauss transform", SIAM Journal on Computing 2009; Andoni et al., "Practical
// and optimal LSH for angular distance", NIPS 2015, use three rounds of it).
//
// A Rotation is immutable and safe for concurrent use. The map of a dimension and a seed is part
// of stored formats: it must not change.
package rotate

import "math"

// Rounds of signs and a transform. A transform covers the largest power of two of the dimensions.
// Where that is not all of them it covers the first and the last in turn, so that more rounds are
// needed.
const (
	rounds      = 3
	roundsOfAny = 4
)

// A Rotation is a random orthogonal map of vectors of Dim dimensions. Its memory is some 20 bytes
// a dimension.
type Rotation struct {
	dim     int
	block   int         // the largest power of two up to dim: how many coordinates a transform covers
	factors [][]float32 // by round, then coordinate: a random sign, times a scale that keeps lengths
	last    []float32   // the same behind the last round, without signs; nil if block is dim
}

// New returns the rotation of a seed. dim must be 1 or more.
func New(dim int, seed uint64) *Rotation {
	r := &Rotation{dim: dim, block: 1}
	for 2*r.block <= dim {
		r.block *= 2
	}
	n := rounds
	if r.block < dim {
		n = roundsOfAny
	}
	random := splitMix(seed)
	for round := range n {
		f := r.scales(round)
		for i := r.first(round); i < r.first(round)+r.block; i++ {
			f[i] = float32(float64(f[i]) / math.Sqrt(float64(r.block)))
		}
		var signs uint64
		for i := range f {
			if i%64 == 0 {
				signs = random.next()
			}
			if signs>>(i%64)&1 == 1 {
				f[i] = -f[i]
			}
		}
		r.factors = append(r.factors, f)
	}
	if r.block < dim {
		r.last = r.scales(n)
	}
	return r
}

// scales returns the factors before a round, or behind the last one, that make up for the pairing of
// the round before.
func (r *Rotation) scales(round int) []float32 {
	f := make([]float32, r.dim)
	for i := range f {
		f[i] = 1
		if round > 0 && r.block < r.dim && i < r.dim/2*2 {
			f[i] = math.Sqrt2 / 2
		}
	}
	return f
}

// first returns the first coordinate that the transform of a round covers.
func (r *Rotation) first(round int) int {
	if round%2 == 0 {
		return 0
	}
	return r.dim - r.block
}

// Dim returns the number of dimensions.
func (r *Rotation) Dim() int { return r.dim }

// Apply rotates x, of Dim numbers, in place. It rounds to float32 after each addition, in an order
// that is the same on all machines, so that the result is the same to the last bit. Its length is
// kept within 1e-5 of itself. It costs 3 d log2 d additions where d is a power of two, at most
// 4 d (log2 d + 1) for other d, and no allocation.
func (r *Rotation) Apply(x []float32) {
	x = x[:r.dim]
	for round, f := range r.factors {
		scale(x, f)
		from := r.first(round)
		hadamard(x[from : from+r.block])
		if r.block < r.dim {
			// Without this the first coordinates would meet the last ones only where the blocks
			// overlap (one step of Kac's walk).
			pair(x)
		}
	}
	if r.last != nil {
		scale(x, r.last)
	}
}

// scale multiplies x by f. The products are stored before anything is added to them: a machine with
// fused multiplication and addition would round otherwise.
func scale(x, f []float32) {
	f = f[:len(x)]
	for i := range x {
		x[i] *= f[i]
	}
}

// pair replaces each coordinate a of the first half and its partner b of the second half by a+b and
// a-b. With an odd number of coordinates the last one has no partner.
func pair(x []float32) {
	half := len(x) / 2
	first, second := x[:half], x[half:2*half]
	for i, a := range first {
		b := second[i]
		first[i], second[i] = a+b, a-b
	}
}

// A splitMix is the generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014).
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
