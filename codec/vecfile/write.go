package vecfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// A Writer writes a matrix as a .npy file of version 1.0 in C order, float32 as
// '<f4' and uint8 as '|u1', row by row: it keeps 64 KiB, however large the matrix
// is. It is not safe for concurrent use. Vectors are a Writer of float32; codes
// (codec.Code.AppendBytes) and 0/1 matrices of labels are one of uint8.
type Writer[T float32 | uint8] struct {
	w          *bufio.Writer
	rows, cols int
	written    int // rows
}

// NewWriter starts a matrix of rows x cols; rows may be 0, cols must be from 1 to
// 1,048,576, more being refused by the readers of this package. The header goes
// out with the first rows, so errors of w, which come back as they are, may show
// in any later call.
func NewWriter[T float32 | uint8](w io.Writer, rows, cols int) (*Writer[T], error) {
	if rows < 0 || cols < 1 || cols > maxCols {
		return nil, fmt.Errorf("a .npy matrix of %d rows and %d columns cannot be written: rows are at least 0, columns from 1 to %s",
			rows, cols, thousands(maxCols))
	}
	descr := "|u1"
	if _, ok := any(T(0)).(float32); ok {
		descr = "<f4"
	}
	out := bufio.NewWriterSize(w, 64<<10)
	// An error of w stays in out and comes back from Flush.
	out.Write(npyHead(descr, fmt.Sprintf("(%d, %d)", rows, cols)))
	return &Writer[T]{w: out, rows: rows, cols: cols}, nil
}

// WriteAll writes a matrix, of which rows has a row each of one length, to a .npy file. It
// replaces what is there; after an error the file is incomplete.
func WriteAll[T float32 | uint8](path string, rows [][]T) (err error) {
	if len(rows) == 0 {
		return fileError(path, errors.New("a matrix without rows does not say how many columns it has: use NewWriter"))
	}
	f, err := os.Create(path)
	if err != nil {
		return fileError(path, err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fileError(path, err)
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

// npyHead returns what stands before the data of a .npy of version 1.0 in C order.
func npyHead(descr, shape string) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	// The format wants data to start at a multiple of 64, for those who map it.
	const prefix = len(npyMagic) + 4
	padding := 63 - (prefix+len(dict))%64
	head := append([]byte(npyMagic), 1, 0)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(dict)+padding+1))
	return append(head, dict+strings.Repeat(" ", padding)+"\n"...)
}

// Write writes the next rows: data is any number of whole rows, one after the
// other. It belongs to the caller again when Write returns. Values are written as
// they are, NaN too.
func (w *Writer[T]) Write(data []T) error {
	if len(data)%w.cols != 0 {
		return fmt.Errorf("%d values are not a multiple of the %d columns of the matrix", len(data), w.cols)
	}
	n := len(data) / w.cols
	if n > w.rows-w.written {
		return fmt.Errorf("%d rows are more than the %d of %d that are left of the matrix", n, w.rows-w.written, w.rows)
	}
	w.written += n
	return w.encode(data)
}

// encode writes values as they stand in a file.
func (w *Writer[T]) encode(data []T) error {
	switch data := any(data).(type) {
	case []byte:
		_, err := w.w.Write(data)
		return err
	case []float32:
		for len(data) > 0 {
			// Encode into the free part of the buffer; an empty one is the only
			// case in which there is none.
			b := w.w.AvailableBuffer()
			if cap(b) < 4 {
				if err := w.w.Flush(); err != nil {
					return err
				}
				continue
			}
			n := min(len(data), cap(b)/4)
			for _, x := range data[:n] {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			if _, err := w.w.Write(b); err != nil {
				return err
			}
			data = data[n:]
		}
	}
	return nil
}

// Close completes the matrix and reports what is missing from it: an error means
// that what was written is no .npy file. It does not close the underlying
// writer.
func (w *Writer[T]) Close() error {
	if err := w.w.Flush(); err != nil {
		return err
	}
	if w.written < w.rows {
		return fmt.Errorf("%d of the %d rows of the matrix were not written", w.rows-w.written, w.rows)
	}
	return nil
}
