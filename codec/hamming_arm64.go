package codec

import "github.com/fddhdb/fddhdb/internal/simd"

// The kernels in assembly follow the rules of hamming_amd64.go. Distances need no
// kernel: the compiler counts bits with the same vectors.

func distancesBy(_ simd.Set, dst []uint16, query, codes []uint64) {
	distancesGeneric(dst, query, codes)
}

func withinBy(k simd.Set, dst []Near, query, codes []uint64, r int, base uint32) int {
	if k == simd.Generic {
		return withinGeneric(dst, query, codes, r, base)
	}
	switch w := len(query); w {
	case 1:
		return within1NEON(&dst[0], &codes[0], len(codes), &query[0], r, uint64(base))
	case 2:
		return within2NEON(&dst[0], &codes[0], len(codes)/2, &query[0], r, uint64(base))
	default:
		return withinNNEON(&dst[0], &codes[0], len(codes)/w, &query[0], r, uint64(base), w)
	}
}

func withinAtBy(k simd.Set, dst []Near, query, codes []uint64, at []uint32, n, r int) int {
	if k == simd.Generic || n == 0 {
		return withinAtGeneric(dst, query, codes, at, n, r)
	}
	return withinAtNEON(&dst[0], &codes[0], n, &at[0], len(at), &query[0], r, len(query))
}

func withinRangesBy(k simd.Set, dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	if k == simd.Generic || n == 0 {
		return withinRangesGeneric(dst, query, codes, from, to, n, r)
	}
	return rangeByRange(k, dst, query, codes, from, to, n, r)
}

func partnersBy(k simd.Set, dst []uint32, query uint16, values []uint16, from, to []uint32, least,
	most int) int {
	room := len(dst) - PartnersRoom
	// The kernel reads 32 values at a time.
	if k == simd.Generic || len(values) < 32 || room < 0 {
		return partnersGeneric(dst, query, values, from, to, least, most)
	}
	return partnersNEON(&dst[0], room, &values[0], len(values), &from[0], &to[0], len(from), int(query),
		least, most-least)
}

//go:noescape
func within1NEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func within2NEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64) int

//go:noescape
func withinNNEON(dst *Near, codes *uint64, n int, query *uint64, r int, base uint64, w int) int

//go:noescape
func withinAtNEON(dst *Near, codes *uint64, n int, at *uint32, k int, query *uint64, r int, w int) int

//go:noescape
func partnersNEON(dst *uint32, room int, values *uint16, n int, from, to *uint32, k int, query, least,
	spread int) int
