package quant

import "github.com/fddhdb/fddhdb/internal/simd"

// A kernel in assembly takes at least one vector.

func dotsBy(k simd.Set, dst []dot, query []int16, vectors []*int8, span int) {
	switch k {
	case simd.AVX512:
		dotsAVX512(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
	case simd.AVX2:
		dotsAVX2(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
	default:
		dotsGeneric(dst, query, vectors)
	}
}

//go:noescape
func dotsAVX512(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)

//go:noescape
func dotsAVX2(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
