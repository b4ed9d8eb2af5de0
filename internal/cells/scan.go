package cells

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// lanes is how many codes stand side by side: word by word, so that a kernel compares the same word
// of all with the query at once. Behind their words stand their slopes, bases, spreads and rows.
const lanes = 8

// groupBytes returns the length of a group of codes with so many coordinates.
func groupBytes(size int) int { return size + numbersBytes + lanes*4 }

const numbersBytes = 3 * lanes * 4

// appendToGroups writes an entry behind the n that are in groups, which are as long as they need.
func appendToGroups(groups []byte, n, size int, e *Entry, row uint32) []byte {
	if n%lanes == 0 {
		groups = append(groups, make([]byte, groupBytes(size))...)
	}
	setLane(groups[n/lanes*groupBytes(size):], n%lanes, size, e, row)
	return groups
}

// setLane writes an entry into a group.
func setLane(group []byte, lane, size int, e *Entry, row uint32) {
	for w := range size / 64 {
		copy(group[w*64+lane*8:][:8], e.code[8*w:])
	}
	numbers := group[size:]
	for i, v := range [...]float32{e.slope, e.base, e.spread} {
		binary.NativeEndian.PutUint32(numbers[(i*lanes+lane)*4:], math.Float32bits(v))
	}
	binary.NativeEndian.PutUint32(numbers[numbersBytes+lane*4:], row)
}

// lane reads an entry of a group, without its cell, and the row.
func lane(group []byte, i, size int) (e Entry, row uint32) {
	e.code = make([]byte, size/8)
	for w := range size / 64 {
		copy(e.code[8*w:][:8], group[w*64+i*8:])
	}
	numbers := group[size:]
	for k, to := range []*float32{&e.slope, &e.base, &e.spread} {
		*to = math.Float32frombits(binary.NativeEndian.Uint32(numbers[(k*lanes+i)*4:]))
	}
	return e, rowAt(group, i, size)
}

// rowAt returns the row of a lane of a group.
func rowAt(group []byte, i, size int) uint32 {
	return binary.NativeEndian.Uint32(group[size+numbersBytes+i*4:])
}

// spreadsOf returns the spreads of a group, which it shares.
func spreadsOf(groups []byte, group, size int) *[lanes]float32 {
	return (*[lanes]float32)(unsafe.Pointer(&groups[group*groupBytes(size)+size+2*lanes*4]))
}

// spreadOf returns the spread of code i.
func spreadOf(groups []byte, i, size int) float32 {
	return spreadsOf(groups, i/lanes, size)[i%lanes]
}

// baseOf returns the base of code i.
func baseOf(groups []byte, i, size int) float32 {
	return (*[lanes]float32)(unsafe.Pointer(&groups[i/lanes*groupBytes(size)+size+lanes*4]))[i%lanes]
}

// A scale has the numbers that all codes of a cell share: a code whose distances from the planes have the
// weighted sum n is at about base + far + slope (unit n + zero) from the query, and at most spread * reach
// less than that.
type scale struct {
	far, unit, zero, reach, floor float32
}

// scan looks through groups of codes. It writes an estimate of each code to found. For each group it writes
// to hits a bit for each code that may be as near as the floor. It looks at unused lanes, too. Meanwhile it
// fetches as many groups of next from memory: the groups that the caller scans thereafter, or the same ones.
func (q *Query) scan(found []float32, hits []byte, groups []byte, s *scale, next []byte) {
	if n := len(hits); n > 0 {
		scanBy(active, found[:n*lanes], hits, groups[:n*groupBytes(len(q.x))], q, s, next)
	}
}

// scanTwice is scan for a cell that is so near that rounding the query to 4 bits would be most of the
// error: it goes by 8 bits, in two scans.
func (q *Query) scanTwice(found []float32, hits []byte, groups []byte, s *scale, next []byte) {
	size := len(q.x)
	first, _ := q.rest.room(len(found))
	q.scan(first, hits, groups, s, next)
	rest := scale{unit: 2 * q.rest.step, zero: -15 * float32(size) * q.rest.step}
	q.rest.scan(found, hits, groups, &rest, next)
	for g := range hits {
		hits[g] = 0
		for i := range lanes {
			at := g*lanes + i
			found[at] += first[at] - baseOf(groups, at, size)
			if found[at]-spreadOf(groups, at, size)*s.reach <= s.floor {
				hits[g] |= 1 << i
			}
		}
	}
}

func scanGeneric(found []float32, hits []byte, groups []byte, planes []uint64, s *scale) {
	words := len(planes) / 4
	length := groupBytes(words * 64)
	for g := range hits {
		group := groups[g*length:][:length]
		numbers := unsafe.Slice((*float32)(unsafe.Pointer(&group[words*64])), 3*lanes)
		hits[g] = 0
		for i := range lanes {
			n := 0
			for w := range words {
				v, p := binary.LittleEndian.Uint64(group[w*64+i*8:]), planes[w*4:][:4]
				n += bits.OnesCount64(v^p[0]) + 2*bits.OnesCount64(v^p[1]) + 4*bits.OnesCount64(v^p[2]) +
					8*bits.OnesCount64(v^p[3])
			}
			at := float32(numbers[lanes+i]+s.far) +
				float32(numbers[i]*float32(float32(s.unit*float32(n))+s.zero))
			found[g*lanes+i] = at
			if at-float32(numbers[2*lanes+i]*s.reach) <= s.floor {
				hits[g] |= 1 << i
			}
		}
	}
}
