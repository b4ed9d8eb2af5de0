package codec

import "math/bits"

func distancesGeneric(dst []uint16, query, codes []uint64) {
	switch len(query) {
	case 1:
		q0 := query[0]
		codes = codes[:len(dst)]
		for i, w := range codes {
			dst[i] = uint16(bits.OnesCount64(w ^ q0))
		}
	case 2:
		q0, q1 := query[0], query[1]
		codes = codes[:2*len(dst)]
		for i := range dst {
			dst[i] = uint16(bits.OnesCount64(codes[2*i]^q0) + bits.OnesCount64(codes[2*i+1]^q1))
		}
	default:
		for i := range dst {
			dst[i] = uint16(Distance(query, codes[i*len(query):][:len(query)]))
		}
	}
}

func withinGeneric(dst []Near, query, codes []uint64, r int, base uint32) int {
	found := 0
	switch len(query) {
	case 1:
		q0 := query[0]
		for i, w := range codes {
			if d := bits.OnesCount64(w ^ q0); d <= r {
				dst[found] = NearOf(d, base+uint32(i))
				found++
			}
		}
	case 2:
		q0, q1 := query[0], query[1]
		for i := uint32(0); len(codes) >= 2; i++ {
			if d := bits.OnesCount64(codes[0]^q0) + bits.OnesCount64(codes[1]^q1); d <= r {
				dst[found] = NearOf(d, base+i)
				found++
			}
			codes = codes[2:]
		}
	default:
		for i := uint32(0); len(codes) >= len(query); i++ {
			if d := Distance(query, codes[:len(query)]); d <= r {
				dst[found] = NearOf(d, base+i)
				found++
			}
			codes = codes[len(query):]
		}
	}
	return found
}

// withinAtGeneric returns -1 if a position is n or more.
func withinAtGeneric(dst []Near, query, codes []uint64, at []uint32, n, r int) int {
	w, found := len(query), 0
	for _, p := range at {
		if int(p) >= n {
			return -1
		}
		if d := Distance(query, codes[int(p)*w:][:w]); d <= r {
			dst[found] = NearOf(d, p)
			found++
		}
	}
	return found
}

// withinRangesGeneric returns -1 if a range is reversed or ends beyond n, or if dst is
// shorter than WithinRanges requires.
func withinRangesGeneric(dst []Near, query, codes []uint64, from, to []uint32, n, r int) int {
	w, found, room := len(query), 0, len(dst)-rangesSlack
	for i, start := range from {
		end := to[i]
		room -= int(end) - int(start)
		if start > end || int(end) > n || room < 0 {
			return -1
		}
		found += withinGeneric(dst[found:], query, codes[int(start)*w:int(end)*w], r, start)
	}
	return found
}
