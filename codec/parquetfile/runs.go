package parquetfile

import (
	"encoding/binary"
	"math/bits"
)

// hybrid decodes runs of equal numbers and groups of packed ones, what Parquet calls RLE:
// levels, numbers of dictionary entries, bools.
type hybrid struct {
	b     []byte
	width int // bits

	run   int    // numbers left that are value
	value uint32 // of them
	group int    // numbers left that are packed
	first int    // bit of the next of them
	bits  []byte
}

// fill decodes the next len(dst) numbers, which must be at most 32 bits, into dst.
func fill[T uint8 | uint32](h *hybrid, dst []T) error {
	for len(dst) > 0 {
		switch {
		case h.run > 0:
			n := min(h.run, len(dst))
			for i := range dst[:n] {
				dst[i] = T(h.value)
			}
			h.run -= n
			dst = dst[n:]
		case h.group > 0:
			n := min(h.group, len(dst))
			for i := range dst[:n] {
				dst[i] = T(unpack(h.bits, h.first, h.width))
				h.first += h.width
			}
			h.group -= n
			dst = dst[n:]
		default:
			if err := h.header(); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpack returns the number of so many bits, at most 32, that starts at a bit.
func unpack(b []byte, first, width int) uint32 {
	at := first >> 3
	if at+8 <= len(b) {
		return uint32(binary.LittleEndian.Uint64(b[at:])>>(first&7)) & uint32(1<<width-1)
	}
	var tail [8]byte
	copy(tail[:], b[min(at, len(b)):])
	return uint32(binary.LittleEndian.Uint64(tail[:])>>(first&7)) & uint32(1<<width-1)
}

// header reads what the next numbers are.
func (h *hybrid) header() error {
	x, n := binary.Uvarint(h.b)
	if n <= 0 || x>>1 == 0 || x>>1 > 1<<31 {
		return errValues
	}
	h.b = h.b[n:]
	if x&1 == 0 {
		size := (h.width + 7) / 8
		if len(h.b) < size {
			return errValues
		}
		h.value = 0
		for i := range size {
			h.value |= uint32(h.b[i]) << (8 * i)
		}
		if h.width < 32 && h.value>>h.width != 0 {
			return errPage
		}
		h.b = h.b[size:]
		h.run = int(x >> 1)
		return nil
	}
	// Groups of eight; the last may be cut where its numbers are not needed.
	size := int(x>>1) * h.width
	if size > len(h.b) {
		size = len(h.b)
		if size == 0 {
			return errValues
		}
	}
	h.bits, h.b, h.first = h.b[:size], h.b[size:], 0
	h.group = int(x>>1) * 8
	if h.width > 0 {
		h.group = min(h.group, size*8/h.width)
	}
	if h.group == 0 {
		return errValues
	}
	return nil
}

// levels decodes n levels up to most into dst. all says that each of them is most.
func levels(dst []byte, b []byte, most int) (all bool, err error) {
	h := hybrid{b: b, width: bits.Len(uint(most))}
	if err := fill(&h, dst); err != nil {
		return false, err
	}
	all = true
	for _, l := range dst {
		if int(l) > most {
			return false, errPage
		}
		all = all && int(l) == most
	}
	return all, nil
}
