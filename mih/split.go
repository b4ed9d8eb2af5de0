package mih

import (
	"math"
	"math/bits"

	"github.com/fddhdb/fddhdb/codec"
)

// A Split cuts codes of q bits into m substrings of neighbouring bits, whose
// widths differ by at most one bit, the wider ones first.
//
// A search by steps (Norouzi, Punjani and Fleet, "Fast Exact Search in Hamming
// Space with Multi-Index Hashing", TPAMI 2014) rests on the pigeonhole principle:
// let r = m a + b with 0 <= b < m. A code within r bits of a query is within a bits
// of it in one of the first b+1 substrings, or within a-1 bits in one of the others;
// else they differed in at least (b+1)(a+1) + (m-b-1)a = r+1 bits. So the lookups of
// radius r are those of radius r-1 and, besides, those at distance exactly a in
// substring b: step r. That is how a [Stored] is searched; a [Table] knows more
// about its buckets, and goes another way (rings.go).
type Split struct {
	bits   int
	starts []int // m + 1 of them
}

const (
	maxWidth    = 24 // bounds a substring, as a table has 2^width buckets
	partnerBits = 16 // bounds one that comes in a pair, as entries have it beside them
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
// wider substrings make buckets that are empty, more and narrower ones make full
// ones, and both cost more than they save: a bucket is to hold some four codes, or
// some thirteen where most of them need not be read. Substrings that come in pairs
// have an even number, and at most 16 bits.
func SplitFor(q, n int) Split {
	log2 := math.Log2(float64(max(n, 16)))
	if codec.Words(q) > 1 {
		pairs := int(math.Round(float64(q) / max(log2-3.7, 2) / 2))
		return NewSplit(q, 2*min(max(pairs, (q+2*partnerBits-1)/(2*partnerBits)), q/2))
	}
	m := int(math.Ceil(float64(q)/(log2-2) - .05))
	return NewSplit(q, min(max(m, (q+maxWidth-1)/maxWidth), q))
}

// paired reports whether a segment takes its substrings in pairs: where codes are
// more than one word, which is too much to have beside each entry of a bucket.
func (s Split) paired() bool { return codec.Words(s.bits) > 1 }

// Len returns the number of substrings, m.
func (s Split) Len() int { return len(s.starts) - 1 }

// Width returns the bits of substring j.
func (s Split) Width(j int) int { return s.starts[j+1] - s.starts[j] }

// Of returns substring j of a code.
func (s Split) Of(c codec.Code, j int) uint32 {
	return uint32(codec.Substring(c, s.starts[j], s.Width(j)))
}

// choose returns the number of ways to choose a of n.
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

// firstMask and nextMask enumerate the numbers of a given count of one bits
// that are below 1<<width, in ascending order (Gosper; HAKMEM, item 175), to
// flip bits of a substring with:
//
//	for x := firstMask(a); x>>width == 0; x = nextMask(x) { ... }
//
// For a = 0 the only one is 0, after which nextMask gives a number that is too
// large.
func firstMask(a int) uint64 { return 1<<a - 1 }

func nextMask(x uint64) uint64 {
	if x == 0 {
		return 1 << 63
	}
	low := x & -x
	carried := x + low
	return (carried^x)>>(2+bits.TrailingZeros64(low)) | carried
}
