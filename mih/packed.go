package mih

import (
	"encoding/binary"
	"math"
)

// A packed array of numbers takes three bytes a number where they allow it. The slots
// in the tables of a segment are most of its memory.
type packed struct {
	bytes []byte // three bytes more than the numbers take, as a number is read in one load
	width int    // bytes of a number: 3 or 4
}

const packedSlack = 3

// packedWidth returns the bytes of a number below n.
func packedWidth(n int) int {
	if n <= 1<<24 {
		return 3
	}
	return 4
}

// newPacked returns arrays of n zeros below limit, which lie in one piece.
func newPacked(arrays, n, limit int) []packed {
	width := packedWidth(limit)
	size := n * width
	all := inHugePages(make([]byte, arrays*size+packedSlack))
	out := make([]packed, arrays)
	for i := range out {
		out[i] = packed{all[i*size : (i+1)*size+packedSlack], width}
	}
	return out
}

// at returns number i.
func (p packed) at(i uint32) uint32 {
	x := binary.LittleEndian.Uint32(p.bytes[int(i)*p.width:])
	return x & (math.MaxUint32 >> (32 - 8*p.width))
}

// setAll sets the numbers from 0 on. It writes to no byte of another array, so that
// goroutines may fill arrays in one piece.
func (p packed) setAll(numbers []uint32) {
	for i, x := range numbers {
		at := p.bytes[i*p.width:]
		at[0], at[1], at[2] = byte(x), byte(x>>8), byte(x>>16)
		if p.width == 4 {
			at[3] = byte(x >> 24)
		}
	}
}

// replace replaces each position in s by the number at it.
func (p packed) replace(s []uint32) {
	bytes, width := p.bytes, p.width
	mask := uint32(math.MaxUint32) >> (32 - 8*width)
	for i, at := range s {
		s[i] = binary.LittleEndian.Uint32(bytes[int(at)*width:]) & mask
	}
}

// len returns the number of numbers.
func (p packed) len() int { return p.bytesOf() / max(p.width, 1) }

// bytesOf returns the memory of the array in bytes.
func (p packed) bytesOf() int { return max(len(p.bytes)-packedSlack, 0) }

// none reports whether the array was never made.
func (p packed) none() bool { return p.bytes == nil }
