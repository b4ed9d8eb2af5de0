package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// dtype is the type of the elements of a .npy file. Its methods take elements in
// little-endian order; others are swapped as they are read.
type dtype struct {
	kind byte // 'f' float, 'i' integer, 'u' unsigned integer, 'b' bool
	size int  // bytes
	big  bool // the file is big-endian
}

const supportedDtypes = "float16, float32, float64, the integer types and bool are; in numpy, a.astype(numpy.float32)"

// nativeBig says whether this machine is big-endian. '=' and a missing order mean the
// order of the machine that reads.
var nativeBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// parseDtype reads a descr such as '<f4', '|b1' or '>i8'.
func parseDtype(descr string) (dtype, error) {
	rest := descr
	big := nativeBig
	if rest != "" && strings.IndexByte("<>|=", rest[0]) >= 0 {
		switch rest[0] {
		case '<':
			big = false
		case '>':
			big = true
		}
		rest = rest[1:]
	}
	switch rest {
	case "b1", "i1", "u1":
		return dtype{rest[0], 1, false}, nil
	case "f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8":
		return dtype{rest[0], int(rest[1] - '0'), big}, nil
	}
	switch {
	case strings.HasPrefix(rest, "O"):
		return dtype{}, fmt.Errorf("dtype object (pickled Python values) is not supported: %s", supportedDtypes)
	case strings.HasPrefix(rest, "U") || strings.HasPrefix(rest, "S"):
		return dtype{}, fmt.Errorf("dtype %s holds strings: keys and labels are read from text files, one line an item", quote([]byte(descr)))
	}
	return dtype{}, fmt.Errorf("dtype %s is not supported: %s", quote([]byte(descr)), supportedDtypes)
}

// String returns the type in numpy's notation.
func (d dtype) String() string {
	switch d.kind {
	case 'b':
		return "bool"
	case 'i':
		return fmt.Sprintf("int%d", 8*d.size)
	case 'u':
		return fmt.Sprintf("uint%d", 8*d.size)
	default:
		return fmt.Sprintf("float%d", 8*d.size)
	}
}

// word returns the bytes of an element as an unsigned number.
func (d dtype) word(b []byte) uint64 {
	switch d.size {
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

// signed returns an element of kind 'i'.
func (d dtype) signed(b []byte) int64 {
	unused := 64 - 8*d.size
	return int64(d.word(b)<<unused) >> unused
}

// number returns an element; 64-bit integers are rounded beyond 2^53.
func (d dtype) number(b []byte) float64 {
	switch d.kind {
	case 'i':
		return float64(d.signed(b))
	case 'f':
		switch d.size {
		case 2:
			return float64(Float16(binary.LittleEndian.Uint16(b)))
		case 4:
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		default:
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	default:
		return float64(d.word(b))
	}
}

// text returns an element exactly, for errors.
func (d dtype) text(b []byte) string {
	switch d.kind {
	case 'i':
		return strconv.FormatInt(d.signed(b), 10)
	case 'f':
		bits := 32
		if d.size == 8 {
			bits = 64
		}
		return strconv.FormatFloat(d.number(b), 'g', -1, bits)
	default:
		return strconv.FormatUint(d.word(b), 10)
	}
}

// float32s writes the elements of raw to dst, rounded to nearest. It returns the index
// of the first that is no finite float32, or -1.
func (d dtype) float32s(dst []float32, raw []byte) int {
	// Only NaN and infinities have an exponent of all ones. One test also covers
	// float64, as a value that is too large becomes an infinity in the conversion.
	const exponent = 0x7f800000
	raw = raw[:len(dst)*d.size]
	switch {
	case d.kind == 'f' && d.size == 4:
		for i := range dst {
			u := binary.LittleEndian.Uint32(raw[4*i:])
			if u&exponent == exponent {
				return i
			}
			dst[i] = math.Float32frombits(u)
		}
	case d.kind == 'f' && d.size == 8:
		for i := range dst {
			x := float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
			if math.Float32bits(x)&exponent == exponent {
				return i
			}
			dst[i] = x
		}
	case d.kind == 'f':
		for i := range dst {
			x := Float16(binary.LittleEndian.Uint16(raw[2*i:]))
			if math.Float32bits(x)&exponent == exponent {
				return i
			}
			dst[i] = x
		}
	case d.kind == 'i':
		// Converting to float64 first would round int64 twice.
		for i := range dst {
			dst[i] = float32(d.signed(raw[d.size*i:]))
		}
	default:
		for i := range dst {
			w := d.word(raw[d.size*i:])
			if d.kind == 'b' && w > 1 {
				return i
			}
			dst[i] = float32(w)
		}
	}
	return -1
}

// notFinite returns the reason why float32s refused an element.
func (d dtype) notFinite(b []byte) error {
	switch x := d.number(b); {
	case d.kind == 'b':
		return fmt.Errorf("a bool is 0 or 1, not %s: the file is damaged", d.text(b))
	case math.IsNaN(x) || math.IsInf(x, 0):
		return errNotFinite(d.text(b))
	default:
		return errTooLarge(d.text(b))
	}
}

func errNotFinite(x string) error {
	return fmt.Errorf("%s is not a finite number, which every value of a vector must be: replace it or drop the row", x)
}

func errTooLarge(x string) error {
	return errors.New(x + " is too large for float32 (at most 3.4028235e+38): scale the column")
}

// Float16 converts an IEEE 754 half-precision number, given by its bits: 1 sign bit, 5
// exponent bits with bias 15, 10 fraction bits. The result is always exact.
func Float16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24, exact in float32
		x := float32(frac) * 0x1p-24
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	default:
		return math.Float32frombits(sign | (exp-15+127)<<23 | frac<<13)
	}
}

// swapBytes reverses the bytes of every element.
func swapBytes(b []byte, size int) {
	for ; len(b) >= size; b = b[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
