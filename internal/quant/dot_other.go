//go:build !amd64 && !arm64

package quant

import "github.com/fddhdb/fddhdb/internal/simd"

func dotsBy(_ simd.Set, dst []dot, query []int16, vectors []*int8, _ int) {
	dotsGeneric(dst, query, vectors)
}
