package matrix

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Type is the type of numbers in a file. Its methods take numbers in little-endian order; others are swapped
// as they are read.
type Type struct {
	Kind byte // 'f' float, 'i' integer, 'u' unsigned integer, 'b' bool
	Size int  // bytes
	Big  bool // the file is big-endian
}

// String returns the type in numpy's notation.
func (t Type) String() string {
	switch t.Kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*t.Size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*t.Size)
	default:
		return fmt.Sprintf("float%d", 8*t.Size)
	}
}

// Word returns the bytes of an element as an unsigned number.
func (t Type) Word(b []byte) uint64 {
	switch t.Size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// Signed returns an element of kind 'i'.
func (t Type) Signed(b []byte) int64 {
	unused := 64 - 8*t.Size
	return int64(t.Word(b)<<unused) >> unused
}

// Number returns an element; 64-bit integers are rounded beyond 2^53.
func (t Type) Number(b []byte) float64 {
	switch t.Kind {
	case 'i':
		return float64(t.Signed(b))
	case 'f':
		switch t.Size {
		case 2:
			return float64(float16(binary.LittleEndian.Uint16(b)))
		case 4:
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		default:
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	default:
		return float64(t.Word(b))
	}
}

// Float32s writes the elements of raw to dst, rounded to nearest. It returns the index of the first that is
// no finite float32, or -1.
func (t Type) Float32s(dst []float32, raw []byte) int {
	// Only NaN and infinities have an exponent of all ones. One test also covers float64, as a value that is
	// too large becomes an infinity in the conversion.
	const exponent = 0x7f800000
	raw = raw[:len(dst)*t.Size]
	switch {
	case t.Kind == 'f' && t.Size == 4:
		for i := range dst {
			u := binary.LittleEndian.Uint32(raw[4*i:])
			if u&exponent == exponent {
				return i
			}
			dst[i] = math.Float32frombits(u)
		}
	case t.Kind == 'f' && t.Size == 8:
		for i := range dst {
			x := float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
			if math.Float32bits(x)&exponent == exponent {
				return i
			}
			dst[i] = x
		}
	case t.Kind == 'f':
		for i := range dst {
			x := float16(binary.LittleEndian.Uint16(raw[2*i:]))
			if math.Float32bits(x)&exponent == exponent {
				return i
			}
			dst[i] = x
		}
	case t.Kind == 'i':
		// Converting to float64 first would round int64 twice.
		for i := range dst {
			dst[i] = float32(t.Signed(raw[t.Size*i:]))
		}
	default:
		for i := range dst {
			w := t.Word(raw[t.Size*i:])
			if t.Kind == 'b' && w > 1 {
				return i
			}
			dst[i] = float32(w)
		}
	}
	return -1
}

// NotFinite returns the reason why Float32s refused an element.
func (t Type) NotFinite(b []byte) error {
	x := t.Number(b)
	bits := 64
	if t.Size < 8 {
		bits = 32
	}
	text := strconv.FormatFloat(x, 'g', -1, bits)
	switch {
	case t.Kind == 'b':
		return fmt.Errorf("a bool is 0 or 1, not %s: the file is damaged", text)
	case math.IsNaN(x) || math.IsInf(x, 0):
		return NotFinite(text)
	}
	return TooLarge(text)
}

// swapBytes reverses the bytes of every element.
func swapBytes(b []byte, size int) {
	for ; len(b) >= size; b = b[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
