//go:build !amd64 && !arm64

package codec

import "github.com/fddhdb/fddhdb/internal/simd"

func distancesBy(_ simd.Set, dst []uint16, query, codes []uint64) {
	distancesGeneric(dst, query, codes)
}

func withinBy(_ simd.Set, dst []Near, query, codes []uint64, r int, base uint32) int {
	return withinGeneric(dst, query, codes, r, base)
}

func withinAtBy(_ simd.Set, dst []Near, query, codes []uint64, at []uint32, n, r int) int {
	return withinAtGeneric(dst, query, codes, at, n, r)
}

func withinRangesBy(_ simd.Set, dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	return withinRangesGeneric(dst, query, codes, from, to, n, r)
}

func partnersBy(_ simd.Set, dst []uint32, query uint16, values []uint16, from, to []uint32, least,
	most int) int {
	return partnersGeneric(dst, query, values, from, to, least, most)
}
