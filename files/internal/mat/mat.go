// Package mat reads matrices of MATLAB files of version 5, which save -v6 and -v7, GNU Octave and scipy
// write.
package mat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// A MATLAB file of version 5, as written by save -v6 and -v7, GNU Octave and scipy.io.savemat, is a header of
// 128 bytes and elements, each with a type and a length:
//
//	matrix      flags with the class, dimensions, name, and the numbers, column by column;
//	            of a sparse one the rows of its numbers, where each column starts, and the
//	            numbers
//	compressed  the same, by zlib
//
// The numbers may have a smaller type than their class. Version 7.3 is HDF5, a different format.

// Types of elements.
const (
	miInt8, miUint8, miInt16, miUint16, miInt32, miUint32 = 1, 2, 3, 4, 5, 6
	miSingle, miDouble, miInt64, miUint64                 = 7, 9, 12, 13
	miMatrix, miCompressed                                = 14, 15
)

// Classes of matrices.
const (
	mxSparse = 5
	mxDouble = 6
	mxUint64 = 15
)

const headerBytes = 128

// types are the types of stored numbers.
var types = map[uint32]matrix.Type{
	miInt8: {Kind: 'i', Size: 1}, miUint8: {Kind: 'u', Size: 1}, miInt16: {Kind: 'i', Size: 2},
	miUint16: {Kind: 'u', Size: 2},
	miInt32:  {Kind: 'i', Size: 4}, miUint32: {Kind: 'u', Size: 4}, miInt64: {Kind: 'i', Size: 8},
	miUint64: {Kind: 'u', Size: 8},
	miSingle: {Kind: 'f', Size: 4}, miDouble: {Kind: 'f', Size: 8},
}

// Open opens the variable that the source names, or the only matrix of the file. Of an array of one row or
// one column each number is a row if flat, as MATLAB has no arrays of one dimension.
func Open(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	f, err := newFile(src)
	if err != nil {
		return nil, err
	}
	vars, err := f.variables()
	if err != nil {
		return nil, err
	}
	var matrices, names []string
	var found *variable
	for _, v := range vars {
		names = append(names, v.name)
		if v.numeric() == nil {
			matrices = append(matrices, v.name)
			if src.Member == "" {
				found = v
			}
		}
		if src.Member != "" && v.name == src.Member {
			if found != nil {
				return nil, src.Fail("has two variables %s", matrix.Quote(v.name))
			}
			found = v
		}
	}
	switch {
	case src.Member != "" && len(names) == 0:
		return nil, src.Fail("has no variables")
	case src.Member != "" && found == nil:
		return nil, src.Fail("has no variable %s: there is %s", matrix.Quote(src.Member), matrix.Names(names))
	case src.Member != "":
		if err := found.numeric(); err != nil {
			return nil, src.Fail("%w", err)
		}
	case len(matrices) == 0:
		return nil, src.Fail("has no variable that is a matrix of numbers")
	case len(matrices) > 1:
		return nil, src.Fail("has several matrices: say which with %s:NAME, NAME being one of %s", src.Name,
			matrix.Names(matrices))
	}
	return f.open(found, flat)
}

// file is a file and its byte order.
type file struct {
	src   matrix.Source
	order binary.ByteOrder
}

func newFile(src matrix.Source) (*file, error) {
	head := make([]byte, min(headerBytes, src.Size))
	if err := src.ReadFull(head, 0); err != nil {
		return nil, err
	}
	hdf5 := errors.New("is of MATLAB version 7.3, which is HDF5 and not read: save it in MATLAB with save('FILE.mat', 'NAME', '-v7'), in Octave with save -v7 FILE.mat NAME")
	switch {
	case bytes.HasPrefix(head, []byte("\x89HDF")), bytes.HasPrefix(head, []byte("MATLAB 7.3")):
		return nil, src.Fail("%w", hdf5)
	case len(head) < headerBytes:
		return nil, src.Fail("is too short for a .mat file")
	case slices.Contains(head[:4], 0):
		return nil, src.Fail("is no .mat file of version 5; one of version 4 would have to be saved again, in MATLAB or Octave with save -v7")
	}
	f := &file{src: src}
	switch string(head[126:]) {
	case "IM":
		f.order = binary.LittleEndian
	case "MI":
		f.order = binary.BigEndian
	default:
		return nil, src.Fail("is not a .mat file: it starts with %s", matrix.Quote(head[:8]))
	}
	switch version := f.order.Uint16(head[124:]); version >> 8 {
	case 1:
	case 2:
		return nil, src.Fail("%w", hdf5)
	default:
		return nil, src.Fail("is of .mat version %#x, and 5 is read: save it with -v7", version)
	}
	return f, nil
}

// element is an element of a file or of a matrix.
type element struct {
	kind uint32
	at   int64 // start of its contents
	size int64 // bytes of its contents
	next int64 // start of the element after it
}

var errDamaged = errors.New("the file is damaged")

// element reads the tag of an element at position at. The element must end at end or before.
func (f *file) element(src matrix.Source, at, end int64) (element, error) {
	var tag [8]byte
	if end-at < 8 {
		return element{}, src.Fail("ends inside an element, at byte %d: the file is truncated", at)
	}
	if err := src.ReadFull(tag[:], at); err != nil {
		return element{}, err
	}
	first := f.order.Uint32(tag[:])
	if small := first >> 16; small != 0 {
		// A tag holds contents of up to four bytes itself.
		if small > 4 {
			return element{}, src.Fail("has a tag %#x at byte %d: %w", first, at, errDamaged)
		}
		return element{kind: first & 0xffff, at: at + 4, size: int64(small), next: at + 8}, nil
	}
	e := element{kind: first, at: at + 8, size: int64(f.order.Uint32(tag[4:]))}
	if e.size > end-e.at {
		return element{}, src.Fail(
			"has an element of %s bytes at byte %d, where %s are left: the file is truncated",
			matrix.Thousands(e.size), at, matrix.Thousands(end-e.at))
	}
	e.next = e.at + e.size
	if e.kind != miCompressed {
		e.next = min(e.at+(e.size+7)&^7, end)
	}
	return e, nil
}

// variable is a variable; only its head has been read.
type variable struct {
	name       string
	compressed bool
	e          element // of the file
	class      byte
	complex    bool
	dims       []int64
	rest       int64 // start of its numbers in the matrix
}

// numeric returns the reason why the variable is no matrix of numbers, or nil.
func (v *variable) numeric() error {
	name := matrix.Quote(v.name)
	switch {
	case v.class < mxSparse || v.class > mxUint64:
		kind := map[byte]string{1: "a cell array", 2: "a struct", 3: "an object", 4: "text"}[v.class]
		if kind == "" {
			kind = "of a class that is no matrix"
		}
		return fmt.Errorf("variable %s is %s: vectors are matrices of numbers", name, kind)
	case v.complex:
		return fmt.Errorf("variable %s has complex numbers: save its real and imaginary parts side by side, [real(x) imag(x)]", name)
	case len(v.dims) != 2:
		return fmt.Errorf("variable %s has %d dimensions: two are supported, rows being items; reshape it",
			name, len(v.dims))
	case v.dims[1] == 0:
		return fmt.Errorf("variable %s has no columns", name)
	case v.dims[1] > matrix.MaxCols:
		return fmt.Errorf("variable %s has %s columns: at most %s are supported; rows are items, is the matrix transposed?",
			name, matrix.Thousands(v.dims[1]), matrix.Thousands(matrix.MaxCols))
	}
	return nil
}

// variables reads the heads of all variables.
func (f *file) variables() ([]*variable, error) {
	var vars []*variable
	for at := int64(headerBytes); at < f.src.Size; {
		e, err := f.element(f.src, at, f.src.Size)
		if err != nil {
			return nil, err
		}
		at = e.next
		v := &variable{e: e}
		switch e.kind {
		case miMatrix:
			err = f.head(f.src, e, v)
		case miCompressed:
			v.compressed = true
			var inner matrix.Source
			if inner, err = f.start(e); err == nil {
				var m element
				if m, err = f.element(inner, 0, inner.Size); err == nil && m.kind == miMatrix {
					err = f.head(inner, m, v)
				}
			}
		}
		if err != nil {
			return nil, err
		}
		if v.class != 0 && v.name != "" { // others are internal to MATLAB
			vars = append(vars, v)
		}
	}
	return vars, nil
}

// head reads the parts of a matrix before its numbers.
func (f *file) head(src matrix.Source, m element, v *variable) error {
	end := m.at + m.size
	flags, err := f.element(src, m.at, end)
	if err != nil {
		return err
	}
	dims, err := f.element(src, flags.next, end)
	if err != nil {
		return err
	}
	name, err := f.element(src, dims.next, end)
	if err != nil {
		return err
	}
	if flags.kind != miUint32 || flags.size != 8 || dims.kind != miInt32 || dims.size%4 != 0 ||
		dims.size > 4*32 || name.kind != miInt8 || name.size > maxName {
		return src.Fail("has a variable that does not start like one, at byte %d: %w", m.at, errDamaged)
	}
	b := make([]byte, 8+dims.size+name.size)
	for _, part := range []struct {
		b []byte
		e element
	}{{b[:8], flags}, {b[8 : 8+dims.size], dims}, {b[8+dims.size:], name}} {
		if err := src.ReadFull(part.b, part.e.at); err != nil {
			return err
		}
	}
	word := f.order.Uint32(b)
	v.class, v.complex = byte(word), word&0x800 != 0
	v.dims = nil
	for i := int64(8); i < 8+dims.size; i += 4 {
		n := int32(f.order.Uint32(b[i:]))
		if n < 0 {
			return src.Fail("has a variable of %d rows or columns: %w", n, errDamaged)
		}
		v.dims = append(v.dims, int64(n))
	}
	v.name, v.rest = string(b[8+dims.size:]), name.next-m.at
	return nil
}

// maxName bounds the name of a variable. MATLAB allows 63 letters.
const maxName = 1024

// open opens a matrix of numbers.
func (f *file) open(v *variable, flat bool) (_ *matrix.Vectors, err error) {
	src, m := f.src, v.e
	if v.compressed {
		if src, err = f.inflate(v.e); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				src.Close()
			}
		}()
		if m, err = f.element(src, 0, src.Size); err != nil {
			return nil, err
		}
	}
	at, end := m.at+v.rest, m.at+m.size
	if v.class == mxSparse {
		return f.openSparse(src, v, at, end)
	}
	numbers, err := f.element(src, at, end)
	if err != nil {
		return nil, err
	}
	t, ok := f.kind(numbers.kind)
	rows, cols := v.dims[0], v.dims[1]
	switch {
	case !ok:
		return nil, src.Fail("variable %s has numbers of the unknown type %d: %w", matrix.Quote(v.name),
			numbers.kind, errDamaged)
	case rows > math.MaxInt64/cols/int64(t.Size) || rows*cols*int64(t.Size) != numbers.size:
		return nil, src.Fail("variable %s is said to be %d x %d, and has %s bytes of numbers of %d: %w",
			matrix.Quote(v.name), rows, cols, matrix.Thousands(numbers.size), t.Size, errDamaged)
	}
	if flat = flat && (rows == 1 || cols == 1); flat {
		rows, cols = rows*cols, 1
	}
	d := &matrix.Dense{Source: src, Type: t, Fortran: true, Rows: int(rows), Cols: int(cols), At: numbers.at}
	vectors := d.Vectors()
	vectors.Flat = flat
	return vectors, nil
}

// kind returns the type of stored numbers.
func (f *file) kind(number uint32) (matrix.Type, bool) {
	t, ok := types[number]
	t.Big = f.order == binary.ByteOrder(binary.BigEndian) && t.Size > 1
	return t, ok
}
