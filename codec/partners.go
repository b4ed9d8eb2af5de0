package codec

import (
	"fmt"
	"math/bits"
)

// PartnersRoom is the room that the dst of Partners needs beyond the possible finds: a
// kernel may store a whole vector for one find.
const PartnersRoom = 16

// Partners goes through the 16-bit values of ranges, values[from[i]] to values[to[i]-1]
// for each i in order. It finds the values that differ from query in at least least and
// at most most bits. It writes their ids to dst, in this order, and returns their
// number. The id of values[p] is ids[p], or p itself if ids is nil. Ranges may be
// empty, overlap and come in any order. len(from) must equal len(to), len(ids) must
// equal len(values), and len(dst) must be at least the sum of the lengths of the ranges
// plus PartnersRoom. Partners may write to any element of dst. It panics if a range is
// reversed or does not lie within the values.
//
// Like WithinRanges it is meant for many short ranges scattered over arrays that are
// larger than the caches. It allocates nothing and keeps none of the slices.
func Partners(dst []uint32, query uint16, values []uint16, ids, from, to []uint32, least, most int) int {
	if len(from) != len(to) || ids != nil && len(ids) != len(values) {
		panic(fmt.Sprintf("codec: %d beginnings and %d ends of ranges, %d ids of %d values", len(from), len(to), len(ids), len(values)))
	}
	if len(from) == 0 {
		return 0
	}
	// Ranges are checked for any bounds, so impossible bounds run too.
	least, most = max(min(least, 17), 0), max(min(most, 16), -1)
	if most < least {
		least, most = 17, 17
	}
	found := partnersBy(active, dst, query, values, from, to, least, most)
	if found < 0 {
		room := len(dst) - PartnersRoom
		for i := range from {
			if from[i] > to[i] || int(to[i]) > len(values) {
				panic(fmt.Sprintf("codec: range %d from %d to %d of %d values", i, from[i], to[i], len(values)))
			}
			room -= int(to[i] - from[i])
		}
		panic(fmt.Sprintf("codec: %d results are %d too few for the ranges", len(dst), -room))
	}
	// Kernels find positions. So only the ids of finds are read, many at a time.
	if ids != nil {
		for i, p := range dst[:found] {
			dst[i] = ids[p]
		}
	}
	return found
}

// partnersGeneric returns -1 if a range is reversed or ends beyond the values, or if
// dst is shorter than Partners requires.
func partnersGeneric(dst []uint32, query uint16, values []uint16, from, to []uint32, least, most int) int {
	found, room := 0, len(dst)-PartnersRoom
	for i, first := range from {
		last := to[i]
		if first > last || int(last) > len(values) {
			return -1
		}
		if room -= int(last - first); room < 0 {
			return -1
		}
		found += partnersOfRange(dst[found:], query, values, int(first), int(last), least, most)
	}
	return found
}

// partnersOfRange counts the bits of four values at a time, in 16-bit lanes of a word.
// It looks at single values only if one of the four is a find.
func partnersOfRange(dst []uint32, query uint16, values []uint16, first, last, least, most int) int {
	const ones = 0x0001000100010001
	queries, above, below := ones*uint64(query), ones*uint64(0x80-least), ones*uint64(0x80+most)
	found := 0
	for p := first; p < last; p += 4 {
		var x uint64
		if rest := values[p:]; len(rest) >= 4 {
			// This is one load. Values behind the range are masked out below.
			x = uint64(rest[0]) | uint64(rest[1])<<16 | uint64(rest[2])<<32 | uint64(rest[3])<<48
		} else {
			for i, v := range rest {
				x |= uint64(v) << (16 * i)
			}
		}
		x ^= queries
		x -= x >> 1 & (ones * 0x5555)
		x = x&(ones*0x3333) + x>>2&(ones*0x3333)
		x = (x + x>>4) & (ones * 0x0f0f)
		x = (x + x>>8) & (ones * 0x1f)
		// Neither the addition nor the subtraction carries into the next lane.
		hits := (x + above) & (below - x) & (ones * 0x80)
		hits &= 1<<(16*uint(last-p)) - 1
		for ; hits != 0; hits &= hits - 1 {
			dst[found] = uint32(p + bits.TrailingZeros64(hits)/16)
			found++
		}
	}
	return found
}
