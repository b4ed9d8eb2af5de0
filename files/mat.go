package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A MATLAB file of version 5, as written by save -v6 and -v7, GNU Octave and
// scipy.io.savemat, is a header of 128 bytes and elements, each with a type and a
// length:
//
//	matrix      flags with the class, dimensions, name, and the numbers, column by column;
//	            of a sparse one the rows of its numbers, where each column starts, and the
//	            numbers
//	compressed  the same, by zlib
//
// The numbers may have a smaller type than their class. Version 7.3 is HDF5, a
// different format.

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

const matHeader = 128

// matTypes are the types of stored numbers.
var matTypes = map[uint32]dtype{
	miInt8: {kind: 'i', size: 1}, miUint8: {kind: 'u', size: 1}, miInt16: {kind: 'i', size: 2}, miUint16: {kind: 'u', size: 2},
	miInt32: {kind: 'i', size: 4}, miUint32: {kind: 'u', size: 4}, miInt64: {kind: 'i', size: 8}, miUint64: {kind: 'u', size: 8},
	miSingle: {kind: 'f', size: 4}, miDouble: {kind: 'f', size: 8},
}

// openMAT opens the variable that the source names, or the only matrix of the file.
func openMAT(src source) (Reader, error) {
	f, err := newMATFile(src)
	if err != nil {
		return nil, err
	}
	vars, err := f.variables()
	if err != nil {
		return nil, err
	}
	var matrices, names []string
	var found *matVariable
	for _, v := range vars {
		names = append(names, v.name)
		if v.numeric() == nil {
			matrices = append(matrices, v.name)
			if src.member == "" {
				found = v
			}
		}
		if src.member != "" && v.name == src.member {
			if found != nil {
				return nil, src.fail("has two variables %s", quote([]byte(v.name)))
			}
			found = v
		}
	}
	list := func(names []string) string {
		if len(names) > maxMembers {
			names = append(names[:maxMembers:maxMembers], "...")
		}
		return strings.Join(names, ", ")
	}
	switch {
	case src.member != "" && found == nil && len(names) == 0:
		return nil, src.fail("has no variables")
	case src.member != "" && found == nil:
		return nil, src.fail("has no variable %s: there is %s", quote([]byte(src.member)), list(names))
	case src.member != "":
		if err := found.numeric(); err != nil {
			return nil, src.fail("%w", err)
		}
	case len(matrices) == 0:
		return nil, src.fail("has no variable that is a matrix of numbers")
	case len(matrices) > 1:
		return nil, src.fail("has several matrices: say which with %s:NAME, NAME being one of %s", src.name, list(matrices))
	}
	return f.open(found)
}

// matFile is a file and its byte order.
type matFile struct {
	src   source
	order binary.ByteOrder
}

func newMATFile(src source) (*matFile, error) {
	head := make([]byte, min(matHeader, src.size))
	if err := src.readFull(head, 0); err != nil {
		return nil, err
	}
	hdf5 := errors.New("is of MATLAB version 7.3, which is HDF5 and not read: save it in MATLAB with save('FILE.mat', 'NAME', '-v7'), in Octave with save -v7 FILE.mat NAME")
	switch {
	case bytes.HasPrefix(head, []byte("\x89HDF")), bytes.HasPrefix(head, []byte("MATLAB 7.3")):
		return nil, src.fail("%w", hdf5)
	case len(head) < matHeader:
		return nil, src.fail("is too short for a .mat file")
	case slices.Contains(head[:4], 0):
		return nil, src.fail("is no .mat file of version 5; one of version 4 would have to be saved again, in MATLAB or Octave with save -v7")
	}
	f := &matFile{src: src}
	switch string(head[126:]) {
	case "IM":
		f.order = binary.LittleEndian
	case "MI":
		f.order = binary.BigEndian
	default:
		return nil, src.fail("is not a .mat file: it starts with %s", quote(head[:8]))
	}
	switch version := f.order.Uint16(head[124:]); version >> 8 {
	case 1:
	case 2:
		return nil, src.fail("%w", hdf5)
	default:
		return nil, src.fail("is of .mat version %#x, and 5 is read: save it with -v7", version)
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

var errMAT = errors.New("the file is damaged")

// element reads the tag of an element at position at. The element must end at end or
// before.
func (f *matFile) element(src source, at, end int64) (element, error) {
	var tag [8]byte
	if end-at < 8 {
		return element{}, src.fail("ends inside an element, at byte %d: the file is truncated", at)
	}
	if err := src.readFull(tag[:], at); err != nil {
		return element{}, err
	}
	first := f.order.Uint32(tag[:])
	if small := first >> 16; small != 0 {
		// A tag holds contents of up to four bytes itself.
		if small > 4 {
			return element{}, src.fail("has a tag %#x at byte %d: %w", first, at, errMAT)
		}
		return element{kind: first & 0xffff, at: at + 4, size: int64(small), next: at + 8}, nil
	}
	e := element{kind: first, at: at + 8, size: int64(f.order.Uint32(tag[4:]))}
	if e.size > end-e.at {
		return element{}, src.fail("has an element of %s bytes at byte %d, where %s are left: the file is truncated", thousands(e.size), at, thousands(end-e.at))
	}
	e.next = e.at + e.size
	if e.kind != miCompressed {
		e.next = min(e.at+(e.size+7)&^7, end)
	}
	return e, nil
}

// matVariable is a variable; only its head has been read.
type matVariable struct {
	name       string
	compressed bool
	e          element // of the file
	class      byte
	complex    bool
	dims       []int64
	rest       int64 // start of its numbers in the matrix
}

// numeric returns the reason why the variable is no matrix of numbers, or nil.
func (v *matVariable) numeric() error {
	name := quote([]byte(v.name))
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
		return fmt.Errorf("variable %s has %d dimensions: two are supported, rows being items; reshape it", name, len(v.dims))
	case v.dims[1] == 0:
		return fmt.Errorf("variable %s has no columns", name)
	case v.dims[1] > maxCols:
		return fmt.Errorf("variable %s has %s columns: at most %s are supported; rows are items, is the matrix transposed?",
			name, thousands(v.dims[1]), thousands(maxCols))
	}
	return nil
}

// variables reads the heads of all variables.
func (f *matFile) variables() ([]*matVariable, error) {
	var vars []*matVariable
	for at := int64(matHeader); at < f.src.size; {
		e, err := f.element(f.src, at, f.src.size)
		if err != nil {
			return nil, err
		}
		at = e.next
		v := &matVariable{e: e}
		switch e.kind {
		case miMatrix:
			err = f.head(f.src, e, v)
		case miCompressed:
			v.compressed = true
			var inner source
			if inner, err = f.start(e); err == nil {
				var m element
				if m, err = f.element(inner, 0, inner.size); err == nil && m.kind == miMatrix {
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
func (f *matFile) head(src source, m element, v *matVariable) error {
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
	if flags.kind != miUint32 || flags.size != 8 || dims.kind != miInt32 || dims.size%4 != 0 || dims.size > 4*32 || name.kind != miInt8 || name.size > maxMATName {
		return src.fail("has a variable that does not start like one, at byte %d: %w", m.at, errMAT)
	}
	b := make([]byte, 8+dims.size+name.size)
	for _, part := range []struct {
		b []byte
		e element
	}{{b[:8], flags}, {b[8 : 8+dims.size], dims}, {b[8+dims.size:], name}} {
		if err := src.readFull(part.b, part.e.at); err != nil {
			return err
		}
	}
	word := f.order.Uint32(b)
	v.class, v.complex = byte(word), word&0x800 != 0
	v.dims = nil
	for i := int64(8); i < 8+dims.size; i += 4 {
		n := int32(f.order.Uint32(b[i:]))
		if n < 0 {
			return src.fail("has a variable of %d rows or columns: %w", n, errMAT)
		}
		v.dims = append(v.dims, int64(n))
	}
	v.name, v.rest = string(b[8+dims.size:]), name.next-m.at
	return nil
}

// maxMATName bounds the name of a variable. MATLAB allows 63 letters.
const maxMATName = 1024

// open opens a matrix of numbers.
func (f *matFile) open(v *matVariable) (_ Reader, err error) {
	src, m := f.src, v.e
	if v.compressed {
		if src, err = f.inflate(v.e); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				src.close()
			}
		}()
		if m, err = f.element(src, 0, src.size); err != nil {
			return nil, err
		}
	}
	at, end := m.at+v.rest, m.at+m.size
	if v.class == mxSparse {
		r, err := f.openSparse(src, v, at, end)
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	numbers, err := f.element(src, at, end)
	if err != nil {
		return nil, err
	}
	d, ok := matTypes[numbers.kind]
	rows, cols := v.dims[0], v.dims[1]
	switch {
	case !ok:
		return nil, src.fail("variable %s has numbers of the unknown type %d: %w", quote([]byte(v.name)), numbers.kind, errMAT)
	case rows > math.MaxInt64/cols/int64(d.size) || rows*cols*int64(d.size) != numbers.size:
		return nil, src.fail("variable %s is said to be %d x %d, and has %s bytes of numbers of %d: %w",
			quote([]byte(v.name)), rows, cols, thousands(numbers.size), d.size, errMAT)
	}
	d.big = f.order == binary.ByteOrder(binary.BigEndian) && d.size > 1
	return &npyReader{m: &npyMatrix{src: src, npyHeader: npyHeader{
		dtype: d, fortran: true, rows: int(rows), cols: int(cols), data: numbers.at}}}, nil
}

// A MATVariable is a variable of a .mat file.
type MATVariable struct {
	Name string
	Rows int
	Cols int
}

// MATVariables returns the variables of a .mat file that Open can read, in file order.
func MATVariables(path string) ([]MATVariable, error) {
	src, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer src.close()
	f, err := newMATFile(src)
	if err != nil {
		return nil, err
	}
	vars, err := f.variables()
	if err != nil {
		return nil, err
	}
	var out []MATVariable
	for _, v := range vars {
		if v.numeric() == nil {
			out = append(out, MATVariable{v.name, int(v.dims[0]), int(v.dims[1])})
		}
	}
	return out, nil
}
