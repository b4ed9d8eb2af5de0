package matrix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
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

// Error is an error in a file, with its place.
//
// Rows and columns count from 0, as in numpy. Lines of a text file count from 1, as in editors. The text
// names the line if there is one, else the row. A header is line 1 and no row.
type Error struct {
	File string // the path as it was given
	Line int    // line of a text file, from 1; 0 if it does not apply
	Row  int    // row of the matrix, or item, from 0; -1 if it does not apply
	Col  int    // column of the matrix, from 0; -1 if it does not apply
	Err  error  // the cause; never nil
}

// Error returns "FILE: row N, column N: cause".
func (e *Error) Error() string {
	var place []string
	switch {
	case e.Line > 0:
		place = append(place, fmt.Sprintf("line %d", e.Line))
	case e.Row >= 0:
		place = append(place, fmt.Sprintf("row %d", e.Row))
	}
	if e.Col >= 0 {
		place = append(place, fmt.Sprintf("column %d", e.Col))
	}
	if place == nil {
		return e.File + ": " + e.Err.Error()
	}
	return e.File + ": " + strings.Join(place, ", ") + ": " + e.Err.Error()
}

// Unwrap returns the cause: errors.Is(err, fs.ErrNotExist) works.
func (e *Error) Unwrap() error { return e.Err }

// FileError returns err as an error about a file as a whole, or as it is if it names its file already.
func FileError(file string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{File: file, Row: -1, Col: -1, Err: cause(err)}
}

// LineError returns err as an error about a line, which is no row.
func LineError(file string, line int, err error) error {
	return &Error{File: file, Line: line, Row: -1, Col: -1, Err: err}
}

// cause returns what an error of the file system says without its path. An early end must not look like
// io.EOF, by which readers say that they have returned all rows.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("the file became shorter while it was read: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// OfKey returns err as an error about the item of a key, "" if it has none.
func OfKey(key string, err error) error {
	if key == "" || err == nil {
		return err
	}
	return fmt.Errorf("key %s: %w", Quote(key), err)
}

// A BadValue is an error about one value, which costs its row only.
type BadValue struct {
	At  int // its column, or its place in a list
	Err error
}

func (e *BadValue) Error() string { return fmt.Sprintf("number %d: %v", e.At, e.Err) }
func (e *BadValue) Unwrap() error { return e.Err }

// Bad returns an error about the value of a column.
func Bad(column int, err error) error { return &BadValue{column, err} }

// NotFinite returns the error about a value that is NaN or infinite.
func NotFinite(x string) error {
	return fmt.Errorf("%s is not a finite number, which every value of a vector must be: replace it or drop the row", x)
}

// TooLarge returns the error about a value that float32 cannot hold.
func TooLarge(x string) error {
	return errors.New(x + " is too large for float32 (at most 3.4028235e+38): scale the column")
}

// Quote returns text of a file for an error, cut to a sane length.
func Quote[T string | []byte](text T) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "..."
	}
	return strconv.Quote(string(text))
}

// Names returns the first names of a list, for an error.
func Names(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// Thousands returns a count with commas: 1,234,567.
func Thousands[T int | int64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
