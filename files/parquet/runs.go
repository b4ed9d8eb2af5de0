package parquet

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// runs decodes numbers of width bits, at most 32, until dst is full: runs of equal numbers and groups of
// packed ones, which Parquet calls RLE. Levels, indices into the dictionary and bools have this form.
func runs[T uint8 | uint32](dst []T, b []byte, width int) error {
	for len(dst) > 0 {
		head, n := binary.Uvarint(b)
		count := head >> 1
		if n <= 0 || count == 0 || count > 1<<31 {
			return errValues
		}
		b = b[n:]
		var part []T
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(b) < size {
				return errValues
			}
			value := unpack(b, 0, 8*size)
			if value>>width != 0 {
				return errPage
			}
			part = dst[:min(int(count), len(dst))]
			part[0] = T(value)
			for n := 1; n < len(part); n *= 2 {
				copy(part[n:], part[:n])
			}
			b = b[size:]
		} else {
			// Groups of eight. The last one may be cut off if its numbers are not needed.
			size, n := min(int(count)*width, len(b)), int(count)*8
			if width > 0 {
				n = min(n, size*8/width)
			}
			if n == 0 {
				return errValues
			}
			part = dst[:min(n, len(dst))]
			unpackAll(part, b, width)
			b = b[size:]
		}
		dst = dst[len(part):]
	}
	return nil
}

// unpackAll unpacks numbers of width bits each from the start of b. If b is too short the last numbers are 0.
func unpackAll[T uint8 | uint32](dst []T, b []byte, width int) {
	i := 0
	// Eight numbers at a time take width bytes. Most levels are decoded here.
	for at := 0; width <= 8 && i+8 <= len(dst) && at+8 <= len(b); at += width {
		x := binary.LittleEndian.Uint64(b[at:])
		for k := range dst[i : i+8] {
			dst[i+k] = T(x & (1<<width - 1))
			x >>= width
		}
		i += 8
	}
	for ; i < len(dst); i++ {
		dst[i] = T(unpack(b, i*width, width))
	}
}

// unpack returns the number of width bits, at most 32, that starts at bit first of b.
func unpack(b []byte, first, width int) uint32 {
	at := first >> 3
	if at+8 <= len(b) {
		return uint32(binary.LittleEndian.Uint64(b[at:])>>(first&7)) & uint32(1<<width-1)
	}
	var tail [8]byte
	copy(tail[:], b[min(at, len(b)):])
	return uint32(binary.LittleEndian.Uint64(tail[:])>>(first&7)) & uint32(1<<width-1)
}

// levels decodes levels up to most into dst, and returns how many of them equal most.
func levels(dst []byte, b []byte, most int) (int, error) {
	width := bits.Len(uint(most))
	if err := runs(dst, b, width); err != nil {
		return 0, err
	}
	for above := most + 1; above < 1<<width; above++ {
		if bytes.IndexByte(dst, byte(above)) >= 0 {
			return 0, errPage
		}
	}
	return bytes.Count(dst, []byte{byte(most)}), nil
}
