package cells

import "math/bits"

// tabulate makes tables of the planes for the kernel for AVX2, which has no instruction to count bits,
// but one that looks up 32 bytes at once. A table has the weighted sum of the distances from all planes
// for each value of four bits of a code, a byte each: 16, which are two numbers of dst. The tables of a
// word stand as the kernel loads them: those of the lower four bits of its bytes 0 and 1, of the upper
// four, and the same of bytes 2 and 3, 4 and 5, 6 and 7.
func tabulate(dst, planes []uint64) {
	for w := range len(planes) / 4 {
		p := planes[4*w:][:4]
		for nibble := range 16 {
			b, shift := nibble/2, 4*nibble
			table := dst[32*w+b/2*8+nibble%2*4+b%2*2:][:2]
			d0, d1, d2, d3 := &differing[p[0]>>shift&15], &differing[p[1]>>shift&15], &differing[p[2]>>shift&15], &differing[p[3]>>shift&15]
			table[0] = d0[0] + d1[0]<<1 + d2[0]<<2 + d3[0]<<3
			table[1] = d0[1] + d1[1]<<1 + d2[1]<<2 + d3[1]<<3
		}
	}
}

// differing has for each two numbers of four bits in how many bits they differ, a byte each.
var differing = func() (all [16][2]uint64) {
	for p := range uint(16) {
		for v := range uint(16) {
			all[p][v/8] |= uint64(bits.OnesCount(p^v)) << (v % 8 * 8)
		}
	}
	return all
}()
