package parquet

import (
	"encoding/binary"
	"fmt"
)

// deltas decodes DELTA_BINARY_PACKED: n whole numbers, each written as its difference to the one before,
// packed in blocks. rest is the remainder of b.
func deltas(b []byte, n int) (values []int64, rest []byte, err error) {
	number := func() uint64 {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			err = errValues
			return 0
		}
		b = b[n:]
		return x
	}
	zigzag := func() int64 {
		x := number()
		return int64(x>>1) ^ -int64(x&1)
	}
	block, minis, total, last := number(), number(), number(), zigzag()
	switch {
	case err != nil:
		return nil, nil, err
	case block == 0 || block%128 != 0 || block > 1<<20 || minis == 0 || minis > block || block%minis != 0 || block/minis%32 != 0:
		return nil, nil, errPage
	case total > uint64(n):
		return nil, nil, fmt.Errorf("%w: it has %d values, and claims %d", errPage, n, total)
	case total < uint64(n):
		return nil, nil, errValues
	case n == 0:
		return nil, b, nil
	}
	values = append(make([]int64, 0, n), last)
	perMini := int(block / minis)
	for len(values) < n {
		least := zigzag()
		if err != nil || len(b) < int(minis) {
			return nil, nil, errValues
		}
		widths := b[:minis]
		b = b[minis:]
		for _, width := range widths {
			if len(values) == n {
				break
			}
			size := perMini * int(width) / 8
			if width > 64 || size > len(b) {
				return nil, nil, errValues
			}
			for i := range min(perMini, n-len(values)) {
				last += least + int64(unpack64(b[:size], i*int(width), int(width)))
				values = append(values, last)
			}
			b = b[size:]
		}
	}
	return values, b, nil
}

// unpack64 is unpack for numbers of up to 64 bits.
func unpack64(b []byte, first, width int) uint64 {
	if width <= 32 {
		return uint64(unpack(b, first, width))
	}
	return uint64(unpack(b, first, 32)) | uint64(unpack(b, first+32, width-32))<<32
}
