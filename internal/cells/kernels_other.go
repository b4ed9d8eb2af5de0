//go:build !amd64 && !arm64

package cells

import "github.com/fddhdb/fddhdb/internal/simd"

func scanBy(_ simd.Set, found []float32, hits []byte, groups []byte, q *Query, s *scale, _ []byte) {
	scanGeneric(found, hits, groups, q.planes, s)
}

func productBy(_ simd.Set, x, y []float32) float32 { return productGeneric(x, y) }
