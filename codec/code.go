package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Limits of the length of a code in bits, which is a multiple of 8.
const (
	MinBits = 8
	MaxBits = 4096
)

// ErrCorrupt is wrapped by every error about bytes that no encoder wrote.
var ErrCorrupt = errors.New("corrupt bytes")

// CheckBits returns an error unless a code may have q bits.
func CheckBits(q int) error {
	if q < MinBits || q > MaxBits || q%8 != 0 {
		return fmt.Errorf("a code has a multiple of 8 from %d to %d bits, not %d", MinBits, MaxBits, q)
	}
	return nil
}

// Words returns the number of 64-bit words of a code of q bits.
func Words(q int) int { return (q + 63) / 64 }

// Bytes returns the length in bytes of a stored code of q bits.
func Bytes(q int) int { return q / 8 }

// A Code is one binary code of Words(q) words; see the package comment. The bits beyond
// q are zero, so distances need no mask.
type Code []uint64

// NewCode returns the code of q zero bits.
func NewCode(q int) Code { return make(Code, Words(q)) }

// Bit returns bit j.
func (c Code) Bit(j int) bool { return c[j/64]>>(j%64)&1 == 1 }

// Flip inverts bit j.
func (c Code) Flip(j int) { c[j/64] ^= 1 << (j % 64) }

// AppendBytes appends the q/8 bytes of the code.
func (c Code) AppendBytes(dst []byte, q int) []byte {
	for n := Bytes(q); n > 0; n -= 8 {
		w := c[0]
		c = c[1:]
		if n >= 8 {
			dst = binary.LittleEndian.AppendUint64(dst, w)
			continue
		}
		for range n {
			dst = append(dst, byte(w))
			w >>= 8
		}
	}
	return dst
}

// SetBytes reads the code from bytes. len(b) must be Bytes(q) for the q that c was made
// for.
func (c Code) SetBytes(b []byte) {
	for i := range c {
		if len(b) >= 8 {
			c[i] = binary.LittleEndian.Uint64(b)
			b = b[8:]
			continue
		}
		c[i] = 0
		for k, x := range b {
			c[i] |= uint64(x) << (8 * k)
		}
		b = nil
	}
}

// CodeFromBytes returns the code in b. The error says that CheckBits refuses its
// length.
func CodeFromBytes(b []byte) (Code, error) {
	if err := CheckBits(8 * len(b)); err != nil {
		return nil, err
	}
	c := NewCode(8 * len(b))
	c.SetBytes(b)
	return c, nil
}

// PackSigns sets bit j of dst if z[j] >= 0, so sgn(0) = +1, and returns dst. len(dst)
// must be Words(len(z)).
func PackSigns(dst Code, z []float64) Code {
	for i := range dst {
		block := z[64*i : min(64*i+64, len(z))]
		var w uint64
		for j, x := range block {
			var bit uint64 // set without a jump: half of the signs would be guessed wrong
			if x >= 0 {
				bit = 1
			}
			w |= bit << (j & 63)
		}
		dst[i] = w
	}
	return dst
}

// Substring returns width bits of the code from bit from on, lowest bit first. width is
// 1 to 64, and from+width at most 64*len(c).
func Substring(c Code, from, width int) uint64 {
	word, shift := from/64, from%64
	s := c[word] >> shift
	if shift+width > 64 {
		s |= c[word+1] << (64 - shift)
	}
	return s & (^uint64(0) >> (64 - width))
}

// Codes is a growing array of codes of one length, packed without gaps: code i is words
// i*Words(q) to (i+1)*Words(q)-1. A copy of the struct is a view of the codes at that
// time. Appending to one copy never changes the others, as long as only the latest is
// appended to.
type Codes struct {
	bits int      // of each code
	data []uint64 // of all codes
}

// NewCodes returns an empty array of codes of q bits, with room for n.
func NewCodes(q, n int) Codes {
	return Codes{bits: q, data: make([]uint64, 0, n*Words(q))}
}

// Bits returns the length of each code in bits.
func (s Codes) Bits() int { return s.bits }

// Len returns the number of codes.
func (s Codes) Len() int {
	if s.bits == 0 {
		return 0
	}
	return len(s.data) / Words(s.bits)
}

// At returns code i; it aliases the array and must not be written to.
func (s Codes) At(i int) Code {
	w := Words(s.bits)
	return Code(s.data[i*w : i*w+w : i*w+w])
}

// Truncated returns an empty array in the same memory. The caller must be the only user
// of s.
func (s Codes) Truncated() Codes { return Codes{s.bits, s.data[:0]} }

// Grow makes room for n more codes.
func (s *Codes) Grow(n int) { s.data = slices.Grow(s.data, n*Words(s.bits)) }

// Append copies c to the end.
func (s *Codes) Append(c Code) { s.data = append(s.data, c...) }

// Slice returns the codes from to to-1 as packed words, for the kernels. They alias the
// array.
func (s Codes) Slice(from, to int) []uint64 {
	w := Words(s.bits)
	return s.data[from*w : to*w]
}
