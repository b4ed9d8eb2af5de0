package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/files"
)

// float32s writes the numbers of raw to dst, rounded to nearest. It returns the index
// of the first that is no finite float32, or -1.
func (l *leaf) float32s(dst []float32, raw []byte) int {
	// Only NaN and infinities have an exponent of all ones. One test also covers
	// float64, as a number that is too large becomes an infinity.
	const exponent = 0x7f800000
	switch raw = raw[:len(dst)*l.width]; {
	case l.kind == float && l.width == 4:
		for i := range dst {
			u := binary.LittleEndian.Uint32(raw[4*i:])
			if u&exponent == exponent {
				return i
			}
			dst[i] = math.Float32frombits(u)
		}
	case l.kind == float:
		for i := range dst {
			x := float32(l.float64(raw[l.width*i:]))
			if math.Float32bits(x)&exponent == exponent {
				return i
			}
			dst[i] = x
		}
	case l.kind == signed:
		for i := range dst {
			dst[i] = float32(l.int64(raw[l.width*i:]))
		}
	default:
		for i := range dst {
			dst[i] = float32(uint64(l.int64(raw[l.width*i:])))
		}
	}
	return -1
}

// float64 returns a number of kind float.
func (l *leaf) float64(b []byte) float64 {
	switch l.width {
	case 2:
		return float64(files.Float16(binary.LittleEndian.Uint16(b)))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// int64 returns a number of an integer kind. An unsigned one of 8 bytes is returned by
// its bits.
func (l *leaf) int64(b []byte) int64 {
	switch {
	case l.width == 8:
		return int64(binary.LittleEndian.Uint64(b))
	case l.kind == unsigned:
		return int64(binary.LittleEndian.Uint32(b))
	}
	return int64(int32(binary.LittleEndian.Uint32(b)))
}

// notFinite returns the reason why float32s refused a number.
func (l *leaf) notFinite(b []byte) error {
	x := l.float64(b)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("%v is not a finite number, which every value of a vector must be: replace it or drop the row", x)
	}
	return fmt.Errorf("%v is too large for float32 (at most 3.4028235e+38): scale the column", x)
}

var errNull = errors.New("is null, which no number of a vector may be: replace it or drop the row")
