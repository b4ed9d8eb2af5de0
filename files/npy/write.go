package npy

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
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
	written    int         // rows
	archive    *zip.Writer // that it is a member of; nil if it is none
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
		return matrix.FileError(path, errors.New("a matrix without rows does not say how many columns it has: use NewWriter"))
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
		return fmt.Errorf("%d rows are more than the %d of %d that are left of the matrix", n, w.rows-w.written, w.rows)
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
	if w.archive != nil {
		return w.archive.Close()
	}
	return nil
}

// NewZip starts a matrix of rows x cols, within the limits of NewWriter, as the only member of a .npz, like
// numpy.savez. It is not compressed, as vectors hardly shrink. name is its name in the archive.
func NewZip[T float32 | uint8](w io.Writer, name string, rows, cols int) (*Writer[T], error) {
	archive := zip.NewWriter(w)
	f, err := createMember(archive, name, zip.Store)
	if err != nil {
		return nil, err
	}
	m, err := NewWriter[T](f, rows, cols)
	if err != nil {
		return nil, err
	}
	m.archive = archive
	return m, nil
}

// createMember starts a member of a .npz. Its time is constant, so that the same matrix makes the same file.
func createMember(archive *zip.Writer, name string, method uint16) (io.Writer, error) {
	return archive.CreateHeader(&zip.FileHeader{
		Name: name + ".npy", Method: method, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
	})
}
