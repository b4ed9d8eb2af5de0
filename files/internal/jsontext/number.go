package jsontext

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// decimal is a parsed number: the digits of its mantissa, as far as they fit, and its power of ten.
type decimal struct {
	mantissa uint64
	exponent int
	negative bool
	whole    bool // all digits are in mantissa
}

// number reads a number. It also returns its text.
func (s *Scanner) number() (d decimal, text []byte, err error) {
	s.peek()
	b, i := s.b, s.at
	if i < len(b) && b[i] == '-' {
		d.negative = true
		i++
	}
	// Local variables stay in registers: most of the time is spent here.
	mantissa, exponent, whole := uint64(0), 0, true
	first := i
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if mantissa < 1e18 { // room for another digit
			mantissa = 10*mantissa + uint64(b[i]-'0')
		} else {
			whole = false
		}
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		return d, nil, s.expected("a number")
	}
	if i < len(b) && b[i] == '.' {
		i++
		start := i
		for ; i < len(b) && b[i]-'0' <= 9 && mantissa < 1e18; i++ {
			mantissa = 10*mantissa + uint64(b[i]-'0')
		}
		exponent = start - i
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			whole = whole && b[i] == '0'
		}
		if i == start {
			return d, nil, s.expected("a number")
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		negative := false
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			negative = b[i] == '-'
			i++
		}
		start, e := i, 0
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			e = min(10*e+int(b[i]-'0'), 1<<20)
		}
		if i == start {
			return d, nil, s.expected("a number")
		}
		if negative {
			e = -e
		}
		exponent += e
	}
	d.mantissa, d.exponent, d.whole = mantissa, exponent, whole
	text = b[s.at:i]
	s.at = i
	return d, text, nil
}

// Number reads a number and returns its text, which aliases the scanned text.
func (s *Scanner) Number() ([]byte, error) {
	_, text, err := s.number()
	return text, err
}

// powers are the powers of ten that float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// float32 returns the nearest float32. It returns false if finding it takes more work.
//
// In float64 the mantissa is rounded once, and the product or quotient once more. So the result is within two
// units of its last place of the number. float32 drops 29 of its bits. Only the side of the middle on which
// these bits are matters. If they are farther from the middle than two units, they are on the same side as
// the number itself.
func (d *decimal) float32() (float32, bool) {
	if !d.whole {
		return 0, false
	}
	x := float64(d.mantissa)
	switch {
	case d.mantissa == 0:
	case d.exponent < -22 || d.exponent > 22:
		return 0, false
	case d.exponent < 0:
		x /= powers[-d.exponent]
	default:
		x *= powers[d.exponent]
	}
	const middle = 1 << 28
	if low := math.Float64bits(x) & (1<<29 - 1); low-(middle-4) <= 8 {
		return 0, false
	}
	// Below these numbers float32 has fewer bits; above them it has no number.
	if x != 0 && (x < 0x1p-125 || x > math.MaxFloat32) {
		return 0, false
	}
	if d.negative {
		x = -x
	}
	return float32(x), true
}

// Float32 reads a number as the nearest float32. A *matrix.BadValue says that the value is no finite number;
// the scanner has read it and can go on.
func (s *Scanner) Float32() (float32, error) {
	d, text, err := s.number()
	if err != nil {
		return 0, s.noNumber(err)
	}
	if x, ok := d.float32(); ok {
		return x, nil
	}
	x, err := strconv.ParseFloat(string(text), 32)
	if err != nil { // its range: the form has been checked
		return 0, matrix.Bad(0, matrix.TooLarge(matrix.Quote(text)))
	}
	return float32(x), nil
}

// ParseFloat32 returns the number that a whole text is, as Float32 does, if it is one of JSON.
func ParseFloat32(text []byte) (float32, bool) {
	s := Scanner{b: text}
	d, all, err := s.number()
	if err != nil || len(all) != len(text) {
		return 0, false
	}
	return d.float32()
}

var nonFinite = [][]byte{[]byte("NaN"), []byte("Infinity"), []byte("-Infinity")}

// noNumber reads a value that is no number. If there is no value at all it returns err.
func (s *Scanner) noNumber(err error) error {
	for _, w := range nonFinite {
		if bytes.HasPrefix(s.b[s.at:], w) {
			s.at += len(w)
			return matrix.Bad(0, matrix.NotFinite(string(w)))
		}
	}
	kind := s.Kind()
	if kind == Invalid || kind == Number {
		return err
	}
	if err := s.Skip(); err != nil {
		return err
	}
	return matrix.Bad(0, fmt.Errorf("is %v, where a number is expected", kind))
}

// Float32s reads an array of numbers as the nearest float32, and appends them to dst. More than limit numbers
// in dst are an error. A *matrix.BadValue is about the first element that is no finite number. The scanner
// has then read the whole array, and dst is not valid.
func (s *Scanner) Float32s(dst []float32, limit int) ([]float32, error) {
	start := len(dst)
	var bad error
	err := s.Array(func() error {
		if len(dst) == limit {
			return fmt.Errorf("byte %d: a vector has more than %d numbers", s.at, limit)
		}
		x, err := s.Float32()
		if err != nil {
			var e *matrix.BadValue
			if !errors.As(err, &e) {
				return err
			}
			if bad == nil {
				bad = matrix.Bad(len(dst)-start, e.Err)
			}
		}
		dst = append(dst, x)
		return nil
	})
	return dst, cmp.Or(err, bad)
}

// Count reads an array of anything, and returns the number of its values. It does not look at the values of a
// flat array without strings.
func (s *Scanner) Count() (n int, err error) {
	if s.peek() == '[' {
		rest := s.b[s.at+1:]
		if end := bytes.IndexByte(rest, ']'); end >= 0 {
			if flat := rest[:end]; bytes.IndexByte(flat, '"') < 0 && bytes.IndexByte(flat, '[') < 0 &&
				bytes.IndexByte(flat, '{') < 0 {
				s.at += end + 2
				if len(bytes.TrimLeft(flat, " \t\r\n")) == 0 {
					return 0, nil
				}
				return bytes.Count(flat, []byte{','}) + 1, nil
			}
		}
	}
	err = s.Array(func() error {
		n++
		return s.Skip()
	})
	return n, err
}

// Uint32s reads an array of whole numbers, 0 or more, and appends them to dst. More than limit numbers in dst
// are an error.
func (s *Scanner) Uint32s(dst []uint32, limit int) ([]uint32, error) {
	err := s.Array(func() error {
		if len(dst) == limit {
			return fmt.Errorf("byte %d: there are more than %d numbers", s.at, limit)
		}
		d, text, err := s.number()
		if err != nil {
			return err
		}
		if !d.whole || d.exponent != 0 || d.negative || d.mantissa > math.MaxUint32 {
			return fmt.Errorf("%s is not a whole number from 0 to %s", matrix.Quote(text),
				strconv.FormatUint(math.MaxUint32, 10))
		}
		dst = append(dst, uint32(d.mantissa))
		return nil
	})
	return dst, err
}
