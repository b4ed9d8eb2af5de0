package codec

import (
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// A kernel in assembly takes pointers to at least one code and to a destination with
// room for all, n codes, and an r of at most 64 bits a word. Its name has the number of
// words of its codes; N stands for any number. Kernels that are given positions check
// them, and return -1 for a wrong one; WithinAt and WithinRanges then panic with the
// details.

func distancesBy(k simd.Set, dst []uint16, query, codes []uint64) {
	w := len(query)
	switch {
	case k == simd.AVX512 && w == 1:
		distances1AVX512(&dst[0], &codes[0], len(dst), &query[0])
	case k == simd.AVX512 && w == 2:
		distances2AVX512(&dst[0], &codes[0], len(dst), &query[0])
	case k == simd.AVX512:
		distancesNAVX512(&dst[0], &codes[0], len(dst), &query[0], w)
	case k == simd.AVX2 && w > 2:
		distancesNAVX2(&dst[0], &codes[0], len(dst), &query[0], w)
	default:
		distancesGeneric(dst, query, codes)
	}
}

func withinBy(k simd.Set, dst []Near, query, codes []uint64, r int, base uint32) int {
	w := len(query)
	switch k {
	case simd.AVX512:
		switch w {
		case 1:
			return within1AVX512(&dst[0], &codes[0], len(codes), &query[0], r, uint64(base))
		case 2:
			return within2AVX512(&dst[0], &codes[0], len(codes)/2, &query[0], r, uint64(base))
		case 4:
			return within4AVX512(&dst[0], &codes[0], len(codes)/4, &query[0], r, uint64(base))
		}
		return withinNAVX512(&dst[0], &codes[0], len(codes)/w, &query[0], r, uint64(base), w)
	case simd.AVX2:
		switch w {
		case 1:
			return within1AVX2(&dst[0], &codes[0], len(codes), &query[0], r, uint64(base))
		case 2:
			return within2AVX2(&dst[0], &codes[0], len(codes)/2, &query[0], r, uint64(base))
		case 4:
			return within4AVX2(&dst[0], &codes[0], len(codes)/4, &query[0], r, uint64(base))
		}
		return withinNAVX2(&dst[0], &codes[0], len(codes)/w, &query[0], r, uint64(base), w)
	}
	return withinGeneric(dst, query, codes, r, base)
}

func withinAtBy(k simd.Set, dst []Near, query, codes []uint64, at []uint32, n, r int) int {
	if k == simd.Generic || n == 0 {
		return withinAtGeneric(dst, query, codes, at, n, r)
	}
	switch w := len(query); w {
	case 1:
		return withinAt1POPCNT(&dst[0], &codes[0], n, &at[0], len(at), &query[0], r)
	case 2:
		return withinAt2POPCNT(&dst[0], &codes[0], n, &at[0], len(at), &query[0], r)
	default:
		return withinAtNPOPCNT(&dst[0], &codes[0], n, &at[0], len(at), &query[0], r, w)
	}
}

func withinRangesBy(k simd.Set, dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	w, room := len(query), len(dst)-rangesSlack
	switch {
	case k == simd.Generic || n == 0 || room < 0:
		return withinRangesGeneric(dst, query, codes, from, to, n, r)
	case k == simd.AVX512 && w == 1:
		return withinRanges1AVX512(&dst[0], room, &codes[0], n, &from[0], &to[0], len(from), &query[0], r)
	case k == simd.AVX512 && w == 2:
		return withinRanges2AVX512(&dst[0], room, &codes[0], n, &from[0], &to[0], len(from), &query[0], r)
	case k == simd.AVX2 && w == 1:
		return withinRanges1AVX2(&dst[0], room, &codes[0], n, &from[0], &to[0], len(from), &query[0], r)
	}
	return rangeByRange(k, dst, query, codes, from, to, n, r)
}

// hasBitalg says whether the machine counts the bits of 16-bit lanes.
var hasBitalg = slices.Contains(simd.Sets(simd.BITALG), simd.AVX512)

// setBits has for each byte the positions of its set bits, a byte each, ascending.
var setBits = func() (numbers [256]uint64) {
	for b := range numbers {
		n := 0
		for rest := b; rest != 0; rest &= rest - 1 {
			numbers[b] |= uint64(bits.TrailingZeros(uint(rest))) << (8 * n)
			n++
		}
	}
	return numbers
}()

func partnersBy(k simd.Set, dst []uint32, query uint16, values []uint16, from, to []uint32, least,
	most int) int {
	room, n := len(dst)-PartnersRoom, len(values)
	// The kernel for AVX2 reads 32 values at a time.
	switch {
	case k == simd.Generic || n == 0 || room < 0:
	case k == simd.AVX512 && hasBitalg:
		return partnersAVX512(&dst[0], room, &values[0], n, &from[0], &to[0], len(from), int(query), least,
			most-least)
	case n >= 32:
		return partnersAVX2(&dst[0], room, &values[0], n, &from[0], &to[0], len(from), int(query), least,
			most-least, &setBits)
	}
	return partnersGeneric(dst, query, values, from, to, least, most)
}

//go:noescape
func partnersAVX512(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least,
	spread int) int

//go:noescape
func partnersAVX2(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least,
	spread int, numbers *[256]uint64) int

//go:noescape
func within1AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func within2AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func within4AVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func withinNAVX512(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int

//go:noescape
func distances1AVX512(dst *uint16, codes *uint64, n int, query *uint64)

//go:noescape
func distances2AVX512(dst *uint16, codes *uint64, n int, query *uint64)

//go:noescape
func distancesNAVX512(dst *uint16, codes *uint64, n int, query *uint64, w int)

//go:noescape
func withinRanges1AVX512(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64,
	r int) int

//go:noescape
func withinRanges2AVX512(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64,
	r int) int

//go:noescape
func within1AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func within2AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func within4AVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func withinNAVX2(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int

//go:noescape
func withinRanges1AVX2(dst *Near, room int, codes *uint64, n int, from, to *uint32, k int, query *uint64,
	r int) int

//go:noescape
func distancesNAVX2(dst *uint16, codes *uint64, n int, query *uint64, w int)

//go:noescape
func withinAt1POPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int) int

//go:noescape
func withinAt2POPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int) int

//go:noescape
func withinAtNPOPCNT(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int, w int) int
