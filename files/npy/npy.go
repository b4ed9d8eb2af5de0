// Package npy reads and writes the files of numpy: .npy, versions 1.0, 2.0 and 3.0, of any type of numbers,
// both byte orders, C and Fortran order; .npz, an archive of them; and the .npz of a sparse matrix of scipy
// (save_npz) in csr form.
//
// Package files opens them by name. Programs use what writes, and ReadCodes.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// Open opens a .npy. An array of one dimension is one row, or if flat a row for each number.
func Open(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	h, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	return h.vectors(src, flat)
}

// vectors returns the rows of a matrix.
func (h *header) vectors(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	rows, cols := h.rows, h.cols
	if h.vector && !flat {
		if rows < 1 || rows > matrix.MaxCols {
			return nil, src.Fail("is one vector of %s numbers: 1 to %s are supported; rows of one number have the shape (n, 1)", matrix.Thousands(rows), matrix.Thousands(matrix.MaxCols))
		}
		rows, cols = 1, rows
	}
	m := h.dense(src)
	if m.Rows, m.Cols = rows, cols; rows == 1 || cols == 1 {
		m.Fortran = false
	}
	v := m.Vectors()
	v.Flat = h.vector && flat
	return v, nil
}

func (h *header) dense(src matrix.Source) *matrix.Dense {
	return &matrix.Dense{Source: src, Type: h.kind, Fortran: h.fortran, Rows: h.rows, Cols: h.cols,
		At: h.data}
}

// ReadCodes reads packed binary codes from a .npy of type uint8 and shape (n, bits/8). Row i is code i, and
// its bit j is bit j mod 8 of byte j/8, as written by numpy.packbits(..., axis=1, bitorder='little').
// codec.CheckBits must allow the number of bits. The codes belong to the caller; they take
// 8*codec.Words(bits) bytes each.
func ReadCodes(path string) (codec.Codes, error) {
	inner, _ := matrix.Inner(path)
	if ext := strings.ToLower(filepath.Ext(inner)); ext != ".npy" {
		return codec.Codes{}, matrix.Source{Name: path}.Fail(
			"%q is not an extension that tells the format: codes are read from .npy files", ext)
	}
	src, err := matrix.Open(path, path)
	if err != nil {
		return codec.Codes{}, err
	}
	defer src.Close()
	return CodesOf(src)
}

// CodesOf is ReadCodes of the bytes of a file.
func CodesOf(src matrix.Source) (codec.Codes, error) {
	h, err := readHeader(src)
	if err != nil {
		return codec.Codes{}, err
	}
	bits := 8 * h.cols
	switch {
	case h.kind.Kind != 'u' || h.kind.Size != 1:
		return codec.Codes{}, src.Fail(
			"holds %s where codes are uint8, 8 bits a byte: make it with numpy.packbits(bits, axis=1, bitorder='little')", h.kind)
	case h.vector: // it could be n codes of 8 bits or one code of 8*n bits
		return codec.Codes{}, src.Fail("has one dimension where codes have shape (n, bits/8): reshape it")
	case codec.CheckBits(bits) != nil:
		return codec.Codes{}, src.Fail("has %s columns of 8 bits: %w", matrix.Thousands(h.cols),
			codec.CheckBits(bits))
	}
	m, codes, c := h.dense(src), codec.NewCodes(bits, h.rows), codec.NewCode(bits)
	for {
		row, err := m.Next()
		if err == io.EOF {
			return codes, nil
		}
		if err != nil {
			return codec.Codes{}, err
		}
		c.SetBytes(row)
		codes.Append(c)
	}
}

// A .npy file (NEP 1, numpy.lib.format) is
//
//	6 bytes   \x93NUMPY
//	2 bytes   version: 1 0, 2 0 or 3 0
//	2 bytes   length of the header, little-endian; 4 bytes from version 2.0 on
//	header    a Python dict: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }
//	          padded with blanks and a newline; Latin-1, UTF-8 in version 3.0
//	data      the elements, in C or Fortran order, and nothing after them
const npyMagic = "\x93NUMPY"

// maxHeader bounds the header. That of a matrix takes 118 bytes, and numpy itself refuses more than 10,000.
const maxHeader = 1 << 16

// header is a header that has been checked against the size of the file.
type header struct {
	kind    matrix.Type
	fortran bool
	vector  bool // one dimension: rows x 1
	rows    int
	cols    int
	data    int64 // position of the elements
}

// readHeader reads and checks the header. The result can be trusted: rows*cols elements are in the file, and
// cols is from 1 to MaxCols.
func readHeader(src matrix.Source) (header, error) {
	d, data, err := readDict(src)
	if err != nil {
		return header{}, err
	}
	h := header{data: data, fortran: d.fortran}
	if h.kind, err = parseType(d.descr); err == nil {
		err = h.setShape(d.shape)
	}
	if err == nil {
		err = h.checkSize(src.Size-data, d.shape)
	}
	if err != nil {
		return h, src.Fail("%w", err)
	}
	return h, nil
}

// readDict reads the header unchecked. It also returns the position of the data.
func readDict(src matrix.Source) (d dict, data int64, err error) {
	prefix := make([]byte, min(12, src.Size))
	if err := src.ReadFull(prefix, 0); err != nil {
		return d, 0, err
	}
	switch {
	case len(prefix) == 0:
		return d, 0, src.Fail("is empty, not a .npy file")
	case bytes.HasPrefix(prefix, []byte("PK\x03\x04")):
		return d, 0, src.Fail("is not a .npy file: it starts like a zip archive, which .npz files are")
	case len(prefix) < len(npyMagic) || string(prefix[:len(npyMagic)]) != npyMagic:
		return d, 0, src.Fail("is not a .npy file: it starts with %s; write it with numpy.save",
			matrix.Quote(prefix[:min(8, len(prefix))]))
	case len(prefix) < 12:
		return d, 0, src.Fail("ends inside the .npy header, after %d bytes: the file is truncated",
			len(prefix))
	}
	major, minor := prefix[6], prefix[7]
	if major < 1 || major > 3 || minor != 0 {
		return d, 0, src.Fail("is of .npy version %d.%d: versions 1.0, 2.0 and 3.0 are supported", major,
			minor)
	}
	start, length := int64(10), int64(binary.LittleEndian.Uint16(prefix[8:]))
	if major > 1 {
		start, length = 12, int64(binary.LittleEndian.Uint32(prefix[8:]))
	}
	if length > maxHeader {
		return d, 0, src.Fail("claims a .npy header of %s bytes, which no matrix needs: at most %s are supported", matrix.Thousands(length), matrix.Thousands(maxHeader))
	}
	if length > src.Size-start {
		return d, 0, src.Fail("ends inside the .npy header, which claims %s bytes: the file is truncated",
			matrix.Thousands(length))
	}
	text := make([]byte, length)
	if err := src.ReadFull(text, start); err != nil {
		return d, 0, err
	}
	if d, err = parseDict(string(text)); err != nil {
		return d, 0, src.Fail(".npy header: %w", err)
	}
	return d, start + length, nil
}

const supported = "float16, float32, float64, the integer types and bool are; in numpy, a.astype(numpy.float32)"

// nativeBig says whether this machine is big-endian. '=' and a missing order mean the order of the machine
// that reads.
var nativeBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// parseType reads a descr such as '<f4', '|b1' or '>i8'.
func parseType(descr string) (matrix.Type, error) {
	rest, big := descr, nativeBig
	if rest != "" && strings.IndexByte("<>|=", rest[0]) >= 0 {
		if rest[0] == '<' || rest[0] == '>' {
			big = rest[0] == '>'
		}
		rest = rest[1:]
	}
	switch rest {
	case "b1", "i1", "u1", "f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8":
		size := int(rest[1] - '0')
		return matrix.Type{Kind: rest[0], Size: size, Big: big && size > 1}, nil
	}
	switch {
	case strings.HasPrefix(rest, "O"):
		return matrix.Type{}, fmt.Errorf("dtype object (pickled Python values) is not supported: %s",
			supported)
	case strings.HasPrefix(rest, "U") || strings.HasPrefix(rest, "S"):
		return matrix.Type{}, fmt.Errorf(
			"dtype %s holds strings: keys and labels are read from text files, one line an item",
			matrix.Quote(descr))
	}
	return matrix.Type{}, fmt.Errorf("dtype %s is not supported: %s", matrix.Quote(descr), supported)
}

// setShape sets rows and columns from the shape.
func (h *header) setShape(shape []int64) error {
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
	return matrix.CheckCols(int64(h.cols), ", shape "+shapeText(shape))
}

// checkSize compares the bytes that the shape needs with those that the file has.
func (h *header) checkSize(have int64, shape []int64) error {
	row := int64(h.cols * h.kind.Size)
	needs := fmt.Sprintf("holds %s bytes of data where the header's shape %s %s needs",
		matrix.Thousands(have), shapeText(shape), h.kind)
	if int64(h.rows) > math.MaxInt64/row {
		return fmt.Errorf("%s more than a file can hold: the header is damaged", needs)
	}
	switch need := int64(h.rows) * row; {
	case have < need:
		return fmt.Errorf("%s %s: the file is truncated", needs, matrix.Thousands(need))
	case have > need:
		return fmt.Errorf("%s %s: there is something after the matrix; save it alone", needs,
			matrix.Thousands(need))
	}
	return nil
}

// shapeText returns a shape in Python's notation, cut to a sane length.
func shapeText(shape []int64) string {
	const most = 6
	var parts []string
	for i, n := range shape {
		if i == most {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, strconv.FormatInt(n, 10))
	}
	if len(shape) == 1 {
		return "(" + parts[0] + ",)"
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// dict is a header before it is checked.
type dict struct {
	descr   string
	fortran bool
	shape   []int64
}

// pair is a key and a value of a header: a string, True or False, or a tuple of whole numbers. Headers never
// vary, so other Python is refused: leniency would only hide damage.
var pair = regexp.MustCompile(
	`^\s*(?:'([^'"\\\n]*)'|"([^'"\\\n]*)")\s*:\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(True|False)|\(((?:\s*-?\d+L?\s*,)*(?:\s*-?\d+L?)?)\s*\))\s*([,}])`)

// parseDict parses the only Python literal that a header may be: a dict with the keys descr, fortran_order
// and shape, each once and in any order.
func parseDict(text string) (d dict, err error) {
	rest, found := strings.CutPrefix(strings.TrimSpace(text), "{")
	seen := map[string]bool{}
	for closed := false; found && !closed; {
		if after, end := strings.CutPrefix(strings.TrimSpace(rest), "}"); end {
			rest, closed = after, true
			break
		}
		m := pair.FindStringSubmatch(rest)
		if m == nil {
			found = false
			break
		}
		key, value := m[1]+m[2], m[3]+m[4]
		rest, closed = rest[len(m[0]):], m[7] == "}"
		switch {
		case seen[key]:
			return d, fmt.Errorf("the key %s stands there twice", matrix.Quote(key))
		case key == "descr" && m[5] == "" && m[6] == "":
			d.descr = value
		case key == "fortran_order" && m[5] != "":
			d.fortran = m[5] == "True"
		case key == "shape" && m[5] == "" && value == "":
			if d.shape, err = parseShape(m[6]); err != nil {
				return d, err
			}
		default:
			return d, fmt.Errorf("%s is none of descr, a string, fortran_order, True or False, and shape, a tuple", matrix.Quote(strings.TrimSpace(m[0])))
		}
		seen[key] = true
	}
	switch {
	case !found && structured.MatchString(rest):
		return d, fmt.Errorf("a structured dtype is not supported: %s", supported)
	case !found || strings.TrimSpace(rest) != "":
		return d, fmt.Errorf("it is not as numpy writes it, at byte %d: %s", len(text)-len(rest),
			matrix.Quote(rest))
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return d, fmt.Errorf("the key %q is missing", key)
		}
	}
	return d, nil
}

var structured = regexp.MustCompile(`^\s*['"]descr['"]\s*:\s*[\[({]`)

// parseShape parses the lengths of a tuple. Python 2 wrote large ones with an L at the end.
func parseShape(text string) (shape []int64, err error) {
	parts := strings.Split(text, ",")
	if last := len(parts) - 1; strings.TrimSpace(parts[last]) == "" {
		parts = parts[:last]
	} else if last == 0 {
		return nil, fmt.Errorf("the shape (%s) is no tuple, as (%[1]s,) is", strings.TrimSpace(text))
	}
	for _, part := range parts {
		part = strings.TrimSpace(part)
		n, err := strconv.ParseInt(strings.TrimSuffix(part, "L"), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("a length in the shape is negative or too large: %s", matrix.Quote(part))
		}
		shape = append(shape, n)
	}
	return shape, nil
}
