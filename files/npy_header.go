package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// A .npy file (NEP 1, numpy.lib.format) is
//
//	6 bytes   \x93NUMPY
//	2 bytes   version: 1 0, 2 0 or 3 0
//	2 bytes   length of the header, little-endian; 4 bytes from version 2.0 on
//	header    a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//	          padded with blanks and a newline; Latin-1, UTF-8 in version 3.0
//	data      the elements, in C or Fortran order, and nothing after them
const npyMagic = "\x93NUMPY"

// maxNPYHeader bounds the header. That of a matrix takes 118 bytes, and numpy itself
// refuses more than 10,000.
const maxNPYHeader = 1 << 16

// npyHeader is a header that has been checked against the size of the file.
type npyHeader struct {
	dtype   dtype
	fortran bool
	vector  bool // one dimension: rows x 1
	rows    int
	cols    int
	data    int64 // position of the elements
}

// rowBytes is the length of a row in the file's own type.
func (h *npyHeader) rowBytes() int { return h.cols * h.dtype.size }

// readNPYHeader reads and checks the header. The result can be trusted: rows*cols
// elements are in the file, and cols is from 1 to maxCols.
func readNPYHeader(src source) (npyHeader, error) {
	var h npyHeader
	d, data, err := readNPYDict(src)
	if err != nil {
		return h, err
	}
	h.data, h.fortran = data, d.fortran
	if h.dtype, err = parseDtype(d.descr); err != nil {
		return h, src.fail("%w", err)
	}
	if err := h.setShape(d.shape); err != nil {
		return h, src.fail("%w", err)
	}
	return h, h.checkSize(src, d.shape)
}

// readNPYDict reads the header unchecked. It also returns the position of the data.
func readNPYDict(src source) (d npyDict, data int64, err error) {
	prefix := make([]byte, min(12, src.size))
	if err := src.readFull(prefix, 0); err != nil {
		return d, 0, err
	}
	switch {
	case len(prefix) == 0:
		return d, 0, src.fail("is empty, not a .npy file")
	case bytes.HasPrefix(prefix, []byte("PK\x03\x04")):
		return d, 0, src.fail("is not a .npy file: it starts like a zip archive, which .npz files are")
	case len(prefix) < len(npyMagic) || string(prefix[:len(npyMagic)]) != npyMagic:
		return d, 0, src.fail("is not a .npy file: it starts with %s; write it with numpy.save", quote(prefix[:min(8, len(prefix))]))
	case len(prefix) < 12:
		return d, 0, src.fail("ends inside the .npy header, after %d bytes: the file is truncated", len(prefix))
	}

	major, minor := prefix[6], prefix[7]
	if major < 1 || major > 3 || minor != 0 {
		return d, 0, src.fail("is of .npy version %d.%d: versions 1.0, 2.0 and 3.0 are supported", major, minor)
	}
	start, length := int64(10), int64(binary.LittleEndian.Uint16(prefix[8:]))
	if major > 1 {
		start, length = 12, int64(binary.LittleEndian.Uint32(prefix[8:]))
	}
	if length > maxNPYHeader {
		return d, 0, src.fail("claims a .npy header of %s bytes, which no matrix needs: at most %s are supported", thousands(length), thousands(maxNPYHeader))
	}
	if length > src.size-start {
		return d, 0, src.fail("ends inside the .npy header, which claims %s bytes: the file is truncated", thousands(length))
	}
	text := make([]byte, length)
	if err := src.readFull(text, start); err != nil {
		return d, 0, err
	}
	p := dictParser{text: text}
	if d, err = p.dict(); err != nil {
		return d, 0, src.fail(".npy header: %w", err)
	}
	return d, start + length, nil
}

// setShape sets rows and columns from the shape.
func (h *npyHeader) setShape(shape []int64) error {
	switch len(shape) {
	case 0:
		return errors.New("holds a single number (shape ()), not a matrix: one or two dimensions are supported")
	case 1:
		h.rows, h.cols, h.vector = int(shape[0]), 1, true
	case 2:
		h.rows, h.cols = int(shape[0]), int(shape[1])
	default:
		return fmt.Errorf("has %d dimensions, shape %s: one or two are supported, rows being items; reshape it", len(shape), shapeText(shape))
	}
	if h.cols == 0 {
		return fmt.Errorf("has no columns, shape %s", shapeText(shape))
	}
	if h.cols > maxCols {
		return fmt.Errorf("has %s columns, shape %s: at most %s are supported; rows are items, is the matrix transposed?",
			thousands(h.cols), shapeText(shape), thousands(maxCols))
	}
	return nil
}

// checkSize compares the bytes that the shape needs with those of the file.
func (h *npyHeader) checkSize(src source, shape []int64) error {
	have := src.size - h.data
	if int64(h.rows) > math.MaxInt64/int64(h.rowBytes()) {
		return src.fail("holds %s bytes of data where the header's shape %s %s needs more than a file can hold: the header is damaged",
			thousands(have), shapeText(shape), h.dtype)
	}
	need := int64(h.rows) * int64(h.rowBytes())
	switch {
	case have < need:
		return src.fail("holds %s bytes of data where the header's shape %s %s needs %s: the file is truncated",
			thousands(have), shapeText(shape), h.dtype, thousands(need))
	case have > need:
		return src.fail("holds %s bytes of data where the header's shape %s %s needs %s: there is something after the matrix; save it alone",
			thousands(have), shapeText(shape), h.dtype, thousands(need))
	}
	return nil
}

// shapeText returns a shape in Python's notation, cut to a sane length.
func shapeText(shape []int64) string {
	const most = 6
	var b strings.Builder
	b.WriteByte('(')
	for i, n := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			b.WriteString("...")
			break
		}
		fmt.Fprint(&b, n)
	}
	if len(shape) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

// npyDict is a header before it is checked.
type npyDict struct {
	descr   string
	fortran bool
	shape   []int64
}

// dictParser parses the only Python literal that a header may be: a dict with the keys
// descr, fortran_order and shape, each once and in any order. It is strict, as numpy's
// headers never vary; leniency would only hide damage.
type dictParser struct {
	text []byte
	pos  int
}

func (p *dictParser) dict() (npyDict, error) {
	var d npyDict
	seen := map[string]bool{}
	if err := p.expect('{'); err != nil {
		return d, err
	}
	for !p.accept('}') {
		key, err := p.str()
		if err != nil {
			return d, err
		}
		if seen[key] {
			return d, fmt.Errorf("the key %s stands there twice", quote([]byte(key)))
		}
		if err := p.expect(':'); err != nil {
			return d, err
		}
		switch key {
		case "descr":
			d.descr, err = p.descr()
		case "fortran_order":
			d.fortran, err = p.boolean()
		case "shape":
			d.shape, err = p.tuple()
		default:
			err = fmt.Errorf("the key %s is not one of descr, fortran_order and shape", quote([]byte(key)))
		}
		if err != nil {
			return d, err
		}
		seen[key] = true
		if !p.accept(',') {
			if err := p.expect('}'); err != nil {
				return d, err
			}
			break
		}
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return d, fmt.Errorf("the key %q is missing", key)
		}
	}
	if p.space(); p.pos < len(p.text) {
		return d, p.unexpected("the end")
	}
	return d, nil
}

// space skips white space.
func (p *dictParser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

// accept skips white space and then c, if it is there.
func (p *dictParser) accept(c byte) bool {
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *dictParser) expect(c byte) error {
	if !p.accept(c) {
		return p.unexpected(fmt.Sprintf("%q", c))
	}
	return nil
}

func (p *dictParser) unexpected(want string) error {
	if p.pos >= len(p.text) {
		return fmt.Errorf("%s is expected where the header ends", want)
	}
	return fmt.Errorf("%s is expected at byte %d, not %s", want, p.pos, quote(p.text[p.pos:min(p.pos+12, len(p.text))]))
}

// str parses a string in single or double quotes. No valid header of a matrix contains
// a backslash.
func (p *dictParser) str() (string, error) {
	p.space()
	if p.pos == len(p.text) || p.text[p.pos] != '\'' && p.text[p.pos] != '"' {
		return "", p.unexpected("a string")
	}
	rest := p.text[p.pos+1:]
	end := bytes.IndexByte(rest, p.text[p.pos])
	if end < 0 || bytes.ContainsAny(rest[:end], "\\\n") {
		return "", p.unexpected("a plain string")
	}
	p.pos += end + 2
	return string(rest[:end]), nil
}

// descr parses the type of elements: a string, unless the type is structured.
func (p *dictParser) descr() (string, error) {
	p.space()
	if p.pos < len(p.text) && strings.IndexByte("[({", p.text[p.pos]) >= 0 {
		return "", fmt.Errorf("a structured dtype is not supported: %s", supportedDtypes)
	}
	return p.str()
}

func (p *dictParser) boolean() (bool, error) {
	p.space()
	for _, word := range []string{"True", "False"} {
		if bytes.HasPrefix(p.text[p.pos:], []byte(word)) {
			p.pos += len(word)
			return word == "True", nil
		}
	}
	return false, p.unexpected("True or False")
}

// tuple parses a tuple of integers: (), (3,), (3, 4) or (3, 4,).
func (p *dictParser) tuple() ([]int64, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	var shape []int64
	for !p.accept(')') {
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		shape = append(shape, n)
		if p.accept(',') {
			continue
		}
		if len(shape) == 1 {
			return nil, p.unexpected("',' after the only length of the shape")
		}
		if err := p.expect(')'); err != nil {
			return nil, err
		}
		break
	}
	return shape, nil
}

// integer parses a length. Python 2 wrote large ones with an L at the end.
func (p *dictParser) integer() (int64, error) {
	p.space()
	start := p.pos
	var n int64
	for ; p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9'; p.pos++ {
		digit := int64(p.text[p.pos] - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, fmt.Errorf("a length in the shape is too large: %s", quote(p.text[start:min(start+24, len(p.text))]))
		}
		n = 10*n + digit
	}
	if p.pos == start {
		if p.pos < len(p.text) && p.text[p.pos] == '-' {
			return 0, fmt.Errorf("a length in the shape is negative: %s", quote(p.text[start:min(start+12, len(p.text))]))
		}
		return 0, p.unexpected("a length")
	}
	if p.pos < len(p.text) && p.text[p.pos] == 'L' {
		p.pos++
	}
	return n, nil
}
