package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A Split cuts codes of q bits into m substrings of neighbouring bits. Their widths
// differ by at most one bit, the wider ones first.
//
// A search by steps (Norouzi, Punjani and Fleet, "Fast Exact Search in Hamming Space
// with Multi-Index Hashing", TPAMI 2014) rests on the pigeonhole principle. Let r = m a
// + b with 0 <= b < m. A code within r bits of a query is within a bits of it in one of
// the first b+1 substrings, or within a-1 bits in one of the others. Otherwise the two
// would differ in at least (b+1)(a+1) + (m-b-1)a = r+1 bits. So radius r takes the
// lookups of radius r-1, and those at distance exactly a in substring b: that is step
// r. A [Stored] is searched by steps. A [Table] knows its buckets better and orders the
// lookups by cost (rings.go).
type Split struct {
	bits   int
	starts []int // start of each substring, and the end of the last one
}

const (
	maxWidth    = 24 // largest width of a substring, as a table has 2^width buckets
	partnerBits = 16 // largest width in a pair, as entries have the partner beside them
)

// NewSplit returns the split of codes of q bits into m substrings.
func NewSplit(q, m int) Split {
	s := Split{bits: q, starts: make([]int, m+1)}
	for j := range m {
		s.starts[j+1] = s.starts[j] + q/m
		if j < q%m {
			s.starts[j+1]++
		}
	}
	return s
}

// SplitFor returns the split that suits the tables of n codes of q bits. Fewer and
// wider substrings leave buckets empty. More and narrower ones fill the buckets. Both
// cost more than they save: a bucket should hold about four codes, or about thirteen
// where most of them are ruled out without being read. Where substrings come in pairs
// their number is even, and none is wider than 16 bits.
func SplitFor(q, n int) Split {
	log2 := math.Log2(float64(max(n, 16)))
	if codec.Words(q) > 1 {
		pairs := int(math.Round(float64(q) / max(log2-3.7, 2) / 2))
		return NewSplit(q, 2*min(max(pairs, (q+2*partnerBits-1)/(2*partnerBits)), q/2))
	}
	m := int(math.Ceil(float64(q)/(log2-2) - .05))
	return NewSplit(q, min(max(m, (q+maxWidth-1)/maxWidth), q))
}

// paired reports whether segments take their substrings in pairs. They do if a code has
// more than one word, which is too much to store beside each entry of a bucket.
func (s Split) paired() bool { return codec.Words(s.bits) > 1 }

// Len returns the number of substrings.
func (s Split) Len() int { return len(s.starts) - 1 }

// Width returns the width of substring j in bits.
func (s Split) Width(j int) int { return s.starts[j+1] - s.starts[j] }

// Of returns the value of substring j of a code.
func (s Split) Of(c codec.Code, j int) uint32 {
	return uint32(codec.Substring(c, s.starts[j], s.Width(j)))
}

// choose returns n over a, the number of ways to choose a of n.
func choose(n, a int) float64 {
	if a > n {
		return 0
	}
	c := 1.0
	for i := range min(a, n-a) {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// firstMask and nextMask enumerate the numbers below 1<<width that have a given count
// of one bits, in ascending order (Gosper; HAKMEM, item 175). Searches flip the bits of
// a substring with them:
//
//	for x := firstMask(a); x>>width == 0; x = nextMask(x) { ... }
//
// For a = 0 the only number is 0; nextMask then returns a number that is too large.
func firstMask(a int) uint64 { return 1<<a - 1 }

// nextMask returns the next larger number with as many one bits as x.
func nextMask(x uint64) uint64 {
	if x == 0 {
		return 1 << 63
	}
	low := x & -x
	carried := x + low
	return (carried^x)>>(2+bits.TrailingZeros64(low)) | carried
}
