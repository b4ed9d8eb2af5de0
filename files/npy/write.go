package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// A Writer writes a matrix as a .npy file of version 1.0 in C order, float32 as '<f4' and uint8 as '|u1', row
// by row. It holds 64 KiB, however large the matrix is. It is not safe for concurrent use. Vectors take a
// Writer of float32. Codes (codec.Code.AppendBytes) and 0/1 matrices of labels take one of uint8.
type Writer[T float32 | uint8] struct {
	w          *bufio.Writer
	rows, cols int
	written    int // rows
}

// NewWriter starts a matrix of rows x cols. rows may be 0. cols must be from 1 to 1,048,576, as readers
// refuse more. The header is written with the first rows, so errors of w may come back from any later call,
// unchanged.
func NewWriter[T float32 | uint8](w io.Writer, rows, cols int) (*Writer[T], error) {
	if rows < 0 || cols < 1 || cols > matrix.MaxCols {
		return nil, fmt.Errorf("a .npy matrix of %d rows and %d columns cannot be written: rows are at least 0, columns from 1 to %s",
			rows, cols, matrix.Thousands(matrix.MaxCols))
	}
	descr := "|u1"
	if _, ok := any(T(0)).(float32); ok {
		descr = "<f4"
	}
	out := bufio.NewWriterSize(w, 64<<10)
	// An error of w stays in out, and Flush returns it.
	out.Write(head(descr, fmt.Sprintf("(%d, %d)", rows, cols)))
	return &Writer[T]{w: out, rows: rows, cols: cols}, nil
}

// WriteAll writes a matrix to a .npy file; all rows must have the same length. It replaces an existing file.
// After an error the file is incomplete.
func WriteAll[T float32 | uint8](path string, rows [][]T) (err error) {
	if len(rows) == 0 {
		return matrix.FileError(path,
			errors.New("a matrix without rows does not say how many columns it has: use NewWriter"))
	}
	f, err := os.Create(path)
	if err != nil {
		return matrix.FileError(path, err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = matrix.FileError(path, err)
		}
	}()
	w, err := NewWriter[T](f, len(rows), len(rows[0]))
	if err != nil {
		return err
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return fmt.Errorf("row %d has %d values where the first has %d", i, len(row), len(rows[0]))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	return w.Close()
}

// head returns everything before the data of a .npy of version 1.0 in C order.
func head(descr, shape string) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	// The format aligns data to 64 bytes, for readers that map it.
	const prefix = len(npyMagic) + 4
	padding := 63 - (prefix+len(dict))%64
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)+padding+1))
	return append(b, dict+strings.Repeat(" ", padding)+"\n"...)
}

// Write writes the next rows: data is any number of whole rows, one after the other. Write does not keep it.
// Values are written unchanged, NaN too.
func (w *Writer[T]) Write(data []T) error {
	if len(data)%w.cols != 0 {
		return fmt.Errorf("%d values are not a multiple of the %d columns of the matrix", len(data), w.cols)
	}
	n := len(data) / w.cols
	if n > w.rows-w.written {
		return fmt.Errorf("%d rows are more than the %d of %d that are left of the matrix", n,
			w.rows-w.written, w.rows)
	}
	w.written += n
	for len(data) > 0 {
		// Encode into the free part of the buffer. Only a full buffer has none.
		b := w.w.AvailableBuffer()
		if cap(b) < 4 {
			if err := w.w.Flush(); err != nil {
				return err
			}
			continue
		}
		n := min(len(data), cap(b)/4)
		b, err := binary.Append(b, binary.LittleEndian, data[:n])
		if err == nil {
			_, err = w.w.Write(b)
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Close completes the matrix. It returns an error if rows are missing; then the output is no valid file. It
// does not close the underlying writer.
func (w *Writer[T]) Close() error {
	if err := w.w.Flush(); err != nil {
		return err
	}
	if w.written < w.rows {
		return fmt.Errorf("%d of the %d rows of the matrix were not written", w.rows-w.written, w.rows)
	}
	return nil
}

// createMember starts a member of a .npz. Its time is constant, so that the same matrix makes the same file.
func createMember(archive *zip.Writer, name string, method uint16) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{
		Name: name + ".npy", Method: method, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	})
}

// A .npz file (numpy.savez, numpy.savez_compressed, scipy.sparse.save_npz) is a zip archive whose members are
// .npy files, NAME.npy each.
//
// Members are decompressed as their rows are read, and never held. The length in the directory is checked
// against the header of the member. The real length is checked against both, and the checksum is verified,
// when the last row is read.

// OpenZip opens the member that the source names, or the sparse matrix or the only member of the archive.
// flat is as for Open.
func OpenZip(src matrix.Source, flat bool) (*matrix.Vectors, error) {
	archive, err := zip.NewReader(src, src.Size)
	if err != nil {
		return nil, src.Fail("is not a .npz file, which is a zip archive: %w", err)
	}
	members := map[string]*zip.File{}
	var names []string
	for _, f := range archive.File {
		name, isNPY := strings.CutSuffix(f.Name, ".npy")
		if !isNPY {
			continue
		}
		if members[name] != nil {
			return nil, src.Fail("has two members %s", matrix.Quote(name))
		}
		members[name] = f
		names = append(names, name)
	}
	slices.Sort(names)
	switch name := src.Member; {
	case len(names) == 0:
		return nil, src.Fail("has no members that are .npy files")
	case name != "" && members[name] == nil:
		return nil, src.Fail("has no member %s: there is %s", matrix.Quote(name), matrix.Names(names))
	case name != "":
		return openDense(src, members[name], flat)
	case members["format"] != nil && members["shape"] != nil:
		return openCSR(src, members)
	case len(names) == 1:
		return openDense(src, members[names[0]], flat)
	default:
		return nil, src.Fail("has several members: say which with %s:NAME, NAME being one of %s", src.Name,
			matrix.Names(names))
	}
}

// openDense opens a member as a dense matrix.
func openDense(src matrix.Source, f *zip.File, flat bool) (*matrix.Vectors, error) {
	m, err := openMember(src, f)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(m)
	if err == nil && h.fortran && h.cols > 1 && h.rows > 1 {
		err = m.Fail("is in Fortran order, in which a .npz is not read: save it in C order (numpy.ascontiguousarray), or as a .npy")
	}
	var v *matrix.Vectors
	if err == nil {
		v, err = h.vectors(m, flat)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	v.Skip, v.Closer = nil, matrix.Closers{m.Closer, src.Closer} // a member is read from start to end
	return v, nil
}

// openMember opens a member of the archive, which is read from start to end. Closing it does not close src.
func openMember(src matrix.Source, f *zip.File) (matrix.Source, error) {
	name := src.Name
	if src.Member == "" {
		name += ":" + strings.TrimSuffix(f.Name, ".npy")
	}
	if most := matrix.MaxInflation * (min(f.CompressedSize64, uint64(src.Size)) +
		1); f.UncompressedSize64 > most {
		return matrix.Source{}, matrix.FileError(name,
			fmt.Errorf("claims %d bytes, its %d can hold %d at most: it is damaged", f.UncompressedSize64,
				f.CompressedSize64, most))
	}
	r, err := f.Open()
	if err != nil {
		return matrix.Source{}, matrix.FileError(name, err)
	}
	size := int64(f.UncompressedSize64)
	return matrix.Source{Name: name, ReaderAt: &forward{r: bufio.NewReader(r), size: size}, Size: size,
		Closer: r}, nil
}

// Read returns the rows of a .npy of size bytes that comes as a stream. Errors call it name. The file has to
// be in C order.
func Read(in io.Reader, name string, size int64) (*matrix.Vectors, error) {
	return Open(matrix.Source{Name: name, ReaderAt: &forward{r: bufio.NewReaderSize(in, 64<<10), size: size},
		Size: size}, false)
}

// A forward is an io.ReaderAt that is read from start to end. Only the bytes in head may be read again: the
// start of a .npy header.
type forward struct {
	r    *bufio.Reader
	size int64
	at   int64    // position of the next byte
	head [12]byte // the first bytes
}

var errBackward = errors.New("internal error: a member of a .npz is read backward")

func (f *forward) ReadAt(b []byte, at int64) (n int, err error) {
	if at < f.at && f.at <= int64(len(f.head)) {
		n = copy(b, f.head[at:f.at])
		at += int64(n)
	}
	if n == len(b) {
		return n, nil
	}
	if at != f.at {
		return n, errBackward
	}
	m, err := io.ReadFull(f.r, b[n:])
	if at < int64(len(f.head)) {
		copy(f.head[at:], b[n:n+m])
	}
	f.at += int64(m)
	n += m
	if err != nil {
		return n, err
	}
	if f.at == f.size {
		// The archive verifies its checksum after the last byte.
		if _, err := f.r.ReadByte(); err != io.EOF {
			if err == nil {
				err = errors.New("holds more than the archive says: it is damaged")
			}
			return n - 1, err
		}
	}
	return n, nil
}
