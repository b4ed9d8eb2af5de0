package quant

import "github.com/fddhdb/fddhdb/internal/simd"

func dotsBy(k simd.Set, dst []dot, query []int16, vectors []*int8, span int) {
	if k == simd.Generic {
		dotsGeneric(dst, query, vectors)
		return
	}
	dotsNEON(&dst[0], &query[0], len(query), &vectors[0], len(dst), len(vectors), span)
}

//go:noescape
func dotsNEON(dst *dot, query *int16, dims int, vectors **int8, n, known, span int)
