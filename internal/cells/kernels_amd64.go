package cells

import "github.com/fddhdb/fddhdb/internal/simd"

// A kernel in assembly takes at least one group, or 32 coordinates.

func scanBy(k simd.Set, found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	words := len(q.planes) / 4
	switch k {
	case simd.AVX512:
		scanAVX512(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], words, s, &next[0])
	case simd.AVX2:
		scanAVX2(&found[0], &hits[0], &groups[0], len(hits), &q.tables[0], words, s, &next[0])
	default:
		scanGeneric(found, hits, groups, q.planes, s)
	}
}

// Both sets have one kernel of products, which takes as long as its numbers take to load.
func productBy(k simd.Set, x, y []float32) float32 {
	if k == simd.Generic {
		return productGeneric(x, y)
	}
	return productAVX2(&x[0], &y[0], len(x))
}

//go:noescape
func scanAVX512(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale,
	next *byte)

//go:noescape
func scanAVX2(found *float32, hits *byte, groups *byte, n int, tables *uint64, words int, s *scale,
	next *byte)

//go:noescape
func productAVX2(x, y *float32, n int) float32
