package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A Scorer scores codes against a real-valued query z. The score of a code h is z . h,
// with the bits of h taken as +-1. The larger the score, the nearer the code. Only the
// code is binary, so this is the asymmetric distance of Gordo et al. (TPAMI 2014). A
// Scorer is immutable, and goroutines may share it.
//
// The lack of a code is the sum of |z_b| over the bits in which it differs from the
// signs of z. Its score is the sum of all |z_b| less twice its lack. Searches work with
// lacks.
//
// The |z_b| are rounded to multiples of a power of two that is at most 2^-50 times
// their sum. In these units they are whole numbers whose sum is below 2^52. So a score
// is exact in whatever order it is added up, comparing two codes gives the same result
// everywhere, and the bounds of a search are not estimates.
type Scorer struct {
	code     codec.Code // the signs of z: the code with the best score
	weights  []int64    // |z_b| in units of 2^-exponent
	total    int64      // sum of the weights
	exponent int        // a weight of 1 is 2^-exponent
}

// NewScorer returns the scorer of z. All numbers of z must be finite, and a code of
// len(z) bits must be possible.
func NewScorer(z []float64) *Scorer {
	s := &Scorer{code: codec.PackSigns(codec.NewCode(len(z)), z), weights: make([]int64, len(z))}
	largest := 0.0
	for _, x := range z {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return s
	}
	// z_b| * down * down2 is below 1, and exact unless it is too small to matter. There
	// are two factors as one alone could be too large.
	_, e := math.Frexp(largest)
	down, down2 := math.Ldexp(1, -e/2), math.Ldexp(1, -e+e/2)
	sum := 0.0
	for _, x := range z {
		sum += math.Abs(x) * down * down2
	}
	_, f := math.Frexp(sum)
	up := math.Ldexp(1, 51-f) // as the sum of |z_b| is below 2^(e+f)
	s.exponent = 51 - f - e
	for b, x := range z {
		s.weights[b] = int64(math.RoundToEven(math.Abs(x) * down * down2 * up))
		s.total += s.weights[b]
	}
	return s
}

// Code returns the signs of z as a code, with sgn(0) = +1. The caller must not write to
// it.
func (s *Scorer) Code() codec.Code { return s.code }

// Score returns the score of h, in time linear in the number of bits in which h differs
// from the signs of z.
func (s *Scorer) Score(h codec.Code) float64 { return s.score(s.lack(h)) }

// lack returns the sum of the weights of the bits in which h differs from the signs of
// z.
func (s *Scorer) lack(h codec.Code) int64 {
	sum := int64(0)
	for i, w := range s.code {
		for differ := w ^ h[i]; differ != 0; differ &= differ - 1 {
			sum += s.weights[64*i+bits.TrailingZeros64(differ)]
		}
	}
	return sum
}

// score returns the score of a code with this lack.
func (s *Scorer) score(lack int64) float64 {
	return math.Ldexp(float64(s.total-2*lack), -s.exponent)
}

// coarseLacks bounds the lack of a code from below, faster than the lack is computed.
// The bound is a sum over the bytes of the code: table p has the part of byte p.
// Weights are cut to units in which their sum fits into 16 bits.
type coarseLacks struct {
	tables [][256]uint16 // by byte of a code, then by the bits in which it differs
	shift  int           // a unit is 1<<shift
}

// fill makes the tables, in 256 steps a byte.
func (c *coarseLacks) fill(s *Scorer) {
	if n := 8 * len(s.code); cap(c.tables) < n {
		c.tables = make([][256]uint16, n)
	} else {
		c.tables = c.tables[:n]
	}
	c.shift = max(bits.Len64(uint64(s.total))-16, 0)
	for p := range c.tables {
		var weights [8]uint16 // bits beyond the end of the code weigh 0
		for b := 8 * p; b < min(8*p+8, len(s.weights)); b++ {
			weights[b%8] = uint16(s.weights[b] >> c.shift)
		}
		table := &c.tables[p]
		table[0] = 0
		for differ := 1; differ < 256; differ++ {
			table[differ] = table[differ&(differ-1)] + weights[bits.TrailingZeros8(uint8(differ))]
		}
	}
}

// above reports whether the cut weights prove that a code lacks more than bound. The
// lack is at least the sum of the cut weights, shifted back. So it is above bound if
// that sum is above the shifted bound. Most codes show it in their first words.
func (c *coarseLacks) above(s *Scorer, h codec.Code, bound int64) bool {
	sum, limit := uint64(0), uint64(bound)>>c.shift
	for i, w := range s.code {
		differ, t := w^h[i], (*[8][256]uint16)(c.tables[8*i:])
		sum += uint64(t[0][byte(differ)]+t[1][byte(differ>>8)]+
			t[2][byte(differ>>16)]+t[3][byte(differ>>24)]) +
			uint64(t[4][byte(differ>>32)]+t[5][byte(differ>>40)]+
				t[6][byte(differ>>48)]+t[7][byte(differ>>56)])
		if sum > limit {
			return true
		}
	}
	return false
}
