//go:build amd64 || arm64

package codec

import "github.com/fddhdb/fddhdb/internal/simd"

// rangeByRange runs the kernel for runs of codes on one range after the other. It
// prefetches some ranges ahead.
func rangeByRange(k simd.Set, dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	const ahead = 8
	w, found, room := len(query), 0, len(dst)-rangesSlack
	fetchRanges(&codes[0], &from[0], &to[0], min(ahead, len(from)), w)
	for i, start := range from {
		if later := i + ahead; i%ahead == 0 && later < len(from) {
			fetchRanges(&codes[0], &from[later], &to[later], min(ahead, len(from)-later), w)
		}
		end := to[i]
		room -= int(end) - int(start)
		if start > end || int(end) > n || room < 0 {
			return -1
		}
		if start < end && r >= 0 {
			found += withinBy(k, dst[found:], query, codes[int(start)*w:int(end)*w], r, start)
		}
	}
	return found
}

// fetchRanges begins to fetch the first KB of each of k ranges of codes of w
// words.
//
//go:noescape
func fetchRanges(codes *uint64, from, to *uint32, k int, w int)
