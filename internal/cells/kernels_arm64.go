package cells

import "github.com/fddhdb/fddhdb/internal/simd"

func scanBy(k simd.Set, found []float32, hits []byte, groups []byte, q *Query, s *scale, next []byte) {
	if k == simd.Generic {
		scanGeneric(found, hits, groups, q.planes, s)
		return
	}
	scanNEON(&found[0], &hits[0], &groups[0], len(hits), &q.planes[0], len(q.planes)/4, s, &next[0])
}

func productBy(k simd.Set, x, y []float32) float32 {
	if k == simd.Generic {
		return productGeneric(x, y)
	}
	return productNEON(&x[0], &y[0], len(x))
}

//go:noescape
func scanNEON(found *float32, hits *byte, groups *byte, n int, planes *uint64, words int, s *scale,
	next *byte)

//go:noescape
func productNEON(x, y *float32, n int) float32
