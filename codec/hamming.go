package codec

import (
	"fmt"
	"math/bits"

	"github.com/fddhdb/fddhdb/internal/simd"
)

// The loops below exist for each set of instructions. All give the same results
// (TestWithinAgrees and those after it). active is the fastest set that this machine can run.
// Only tests change it.
var (
	sets   = simd.Sets(simd.VPOPCNTDQ)
	active = sets[0]
)

// KernelName returns the name of the set of Hamming kernels that this machine runs:
// generic, avx2, avx512 or neon.
func KernelName() string { return active.String() }

// A Near is a position and its distance from a query in one number, distance<<32 |
// position. Sorting Nears as integers sorts them by (distance, position).
type Near uint64

// NearOf returns the Near of a position and its distance. The distance must not be
// negative.
func NearOf(distance int, position uint32) Near {
	return Near(distance)<<32 | Near(position)
}

// Distance returns the distance in bits.
func (n Near) Distance() int { return int(n >> 32) }

// Position returns the position.
func (n Near) Position() uint32 { return uint32(n) }

// Distance returns the number of bits in which two codes of one length differ.
func Distance(a, b Code) int {
	n := 0
	for i, w := range a {
		n += bits.OnesCount64(w ^ b[i])
	}
	return n
}

// Distances writes to dst[i] the distance between query and the i-th of the packed
// codes. len(codes) must be len(dst)*len(query). It reads every word of every code and
// allocates nothing.
func Distances(dst []uint16, query Code, codes []uint64) {
	if countCodes(codes, len(query)) != len(dst) {
		panic(fmt.Sprintf("codec: %d distances of %d words of codes of %d", len(dst), len(codes), len(query)))
	}
	if len(dst) > 0 {
		distancesBy(active, dst, query, codes)
	}
}

// Within writes to dst a Near for each of the packed codes within r bits of query, in
// ascending order of position, and returns their number. Positions count from base, and
// the last one must fit in 32 bits. len(codes) must be a multiple of len(query), and
// len(dst) at least the number of codes. Within may write to any element of dst[:number
// of codes], but only those it counts are valid. A negative r finds nothing; an r of
// 64*len(query) or more finds everything.
//
// Within reads every word of every code and allocates nothing. With few matches it
// costs as much as the memory traffic. It keeps none of the slices, and goroutines may
// share query and codes.
func Within(dst []Near, query Code, codes []uint64, r int, base uint32) int {
	n := countCodes(codes, len(query))
	if len(dst) < n {
		panic(fmt.Sprintf("codec: room for %d of %d codes", len(dst), n))
	}
	if n == 0 || r < 0 {
		return 0
	}
	checkBase(base, n)
	return withinBy(active, dst, query, codes, min(r, 64*len(query)), base)
}

// WithinAt is Within for the codes at the given positions. It writes a Near for each
// at[i] whose code is within r bits of query, in the order of at. at may have any order
// and repeat positions. len(dst) must be at least len(at), and WithinAt may write to
// any of dst[:len(at)]. It panics if a position is not that of a code.
//
// It is meant for random access to an array that is larger than the caches: while it
// compares one code it prefetches later ones.
func WithinAt(dst []Near, query Code, codes []uint64, at []uint32, r int) int {
	n := countCodes(codes, len(query))
	if len(dst) < len(at) {
		panic(fmt.Sprintf("codec: room for %d of %d positions", len(dst), len(at)))
	}
	if len(at) == 0 {
		return 0
	}
	// Positions are checked for any r, so r < 0 runs too.
	found := withinAtBy(active, dst, query, codes, at, n, max(min(r, 64*len(query)), -1))
	if found < 0 {
		for i, p := range at {
			if int(p) >= n {
				panic(fmt.Sprintf("codec: position %d at %d of %d codes", p, i, n))
			}
		}
	}
	return found
}

// rangesSlack is the room that the dst of WithinRanges needs beyond the codes of all
// ranges: a kernel may store a whole vector for a range of one code.
const rangesSlack = 8

// WithinRanges is Within for the codes from[i] to to[i]-1, for each i in order. Ranges
// may be empty, overlap and come in any order. len(from) must equal len(to), and
// len(dst) must be at least the sum of the lengths of the ranges plus 8. WithinRanges
// may write to any element of dst. It panics if a range is reversed or does not lie
// within the codes.
//
// It is meant for many short ranges scattered over an array that is larger than the
// caches: while it compares one range it prefetches the beginnings of later ones.
func WithinRanges(dst []Near, query Code, codes []uint64, from, to []uint32, r int) int {
	n := countCodes(codes, len(query))
	if len(from) != len(to) {
		panic(fmt.Sprintf("codec: %d beginnings and %d ends of ranges", len(from), len(to)))
	}
	if len(from) == 0 {
		return 0
	}
	found := withinRangesBy(active, dst, query, codes, from, to, n, max(min(r, 64*len(query)), -1))
	if found < 0 {
		room := len(dst) - rangesSlack
		for i := range from {
			if from[i] > to[i] || int(to[i]) > n {
				panic(fmt.Sprintf("codec: range %d from %d to %d of %d codes", i, from[i], to[i], n))
			}
			room -= int(to[i] - from[i])
		}
		panic(fmt.Sprintf("codec: %d results are %d too few for the ranges", len(dst), -room))
	}
	return found
}

// WithinEach is Within for several queries of one length over one block of codes, which
// is read from memory once. dst[j] receives the Nears of the codes within r[j] bits of
// queries[j], and n[j] their number. dst, n and r must be at least as long as queries,
// and each dst[j] must have room for all codes.
//
// If the codes are not in the caches, two queries cost little more than one. If they
// are, each query costs as much as Within.
func WithinEach(dst [][]Near, n []int, queries []Code, codes []uint64, r []int, base uint32) {
	if len(queries) == 0 {
		return
	}
	w := len(queries[0])
	count := countCodes(codes, w)
	if k := len(queries); len(dst) < k || len(n) < k || len(r) < k {
		panic(fmt.Sprintf("codec: %d queries, %d results, %d counts, %d radii", k, len(dst), len(n), len(r)))
	}
	for j, query := range queries {
		if len(query) != w || len(dst[j]) < count {
			panic(fmt.Sprintf("codec: query %d of %d words with room for %d of %d codes of %d words", j,
				len(query), len(dst[j]), count, w))
		}
	}
	clear(n[:len(queries)])
	if count == 0 {
		return
	}
	checkBase(base, count)
	// All queries but the first find the codes of a piece in the nearest cache, where
	// they only pay for counting bits; one loop over several queries would count as
	// many. A piece is only 4 KB, so that the memory brings the next one while the
	// later queries run.
	const piece = 512
	step := max(piece/w, 1)
	for from := 0; from < count; from += step {
		to := min(from+step, count)
		for j, query := range queries {
			n[j] += Within(dst[j][n[j]:], query, codes[from*w:to*w], r[j], base+uint32(from))
		}
	}
}

// countCodes returns the number of codes of w words.
func countCodes(codes []uint64, w int) int {
	if w == 1 {
		return len(codes)
	}
	if w < 1 || w > MaxBits/64 || len(codes)%w != 0 {
		panic(fmt.Sprintf("codec: %d words of codes of %d words", len(codes), w))
	}
	return len(codes) / w
}

// checkBase panics if the position of the last of n > 0 codes overflows.
func checkBase(base uint32, n int) {
	if uint64(base)+uint64(n-1) > 1<<32-1 {
		panic(fmt.Sprintf("codec: position of the last of %d codes from %d", n, base))
	}
}
