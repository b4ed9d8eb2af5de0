package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A Scorer scores codes against a real-valued query z: the score of a code h is
// z . h, its bits taken as +-1. The larger the nearer: codes on one side only, which
// is the asymmetric distance of Gordo et al. (TPAMI 2014). It is immutable, and
// goroutines may share it.
//
// The numbers |z_b| are rounded to multiples of a power of two, which is at most
// 2^-50 times their sum. In these units they are whole numbers whose sum is below
// 2^52. So a score is exact however it is added up, two
// codes have the same score or one is better, whoever asks, and the bounds that a
// search goes by are no estimates.
type Scorer struct {
	code     codec.Code // the signs of z, which no code scores better than
	weights  []int64    // |z_b|
	total    int64      // their sum
	exponent int        // a weight of 1 is 2^-exponent
}

// NewScorer returns the scorer of z, all of whose numbers are finite; its length is
// one that a code may have.
func NewScorer(z []float64) *Scorer {
	s := &Scorer{code: codec.PackSigns(codec.NewCode(len(z)), z), weights: make([]int64, len(z))}
	largest := 0.0
	for _, x := range z {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return s
	}
	// |z_b| * down * down2 is below 1, and exact unless it is too small to matter; one
	// factor alone could be too large.
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

// Code returns the signs of z as a code, sgn(0) = +1; it must not be written to.
func (s *Scorer) Code() codec.Code { return s.code }

// Score returns the score of a code. The time is that of the bits in which it
// differs from the signs of z.
func (s *Scorer) Score(h codec.Code) float64 { return s.score(s.lack(h)) }

// lack returns what a code lacks: the sum of the weights of the bits in which it
// differs from the signs of z. Its score is the sum of all less twice that.
func (s *Scorer) lack(h codec.Code) int64 {
	sum := int64(0)
	for i, w := range s.code {
		for differ := w ^ h[i]; differ != 0; differ &= differ - 1 {
			sum += s.weights[64*i+bits.TrailingZeros64(differ)]
		}
	}
	return sum
}

// score returns the score of a code that lacks so much.
func (s *Scorer) score(lack int64) float64 {
	return math.Ldexp(float64(s.total-2*lack), -s.exponent)
}

// coarseLacks bounds what codes lack from below, faster than that is computed: the
// sum over the bytes of a code of what table p has for byte p. Weights are cut to
// such units that all of them together fit into 16 bits.
type coarseLacks struct {
	tables [][256]uint16
	shift  int
}

// fill makes the tables, in time 256 a byte.
func (c *coarseLacks) fill(s *Scorer) {
	if n := 8 * len(s.code); cap(c.tables) < n {
		c.tables = make([][256]uint16, n)
	} else {
		c.tables = c.tables[:n]
	}
	c.shift = max(bits.Len64(uint64(s.total))-16, 0)
	for p := range c.tables {
		var weights [8]uint16 // those of bits that no code has stay 0
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

// above reports whether the code lacks more than the bound for certain. As what it
// lacks is at least the sum of the cut weights, shifted back, it does where that sum
// is above the bound, shifted. Most codes show it in their first words.
func (c *coarseLacks) above(s *Scorer, h codec.Code, bound int64) bool {
	sum, limit := uint64(0), uint64(bound)>>c.shift
	for i, w := range s.code {
		differ, t := w^h[i], (*[8][256]uint16)(c.tables[8*i:])
		sum += uint64(t[0][byte(differ)]+t[1][byte(differ>>8)]+t[2][byte(differ>>16)]+t[3][byte(differ>>24)]) +
			uint64(t[4][byte(differ>>32)]+t[5][byte(differ>>40)]+t[6][byte(differ>>48)]+t[7][byte(differ>>56)])
		if sum > limit {
			return true
		}
	}
	return false
}
